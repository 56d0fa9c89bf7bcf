/** Records shown at a terminal where nothing else is asked for. */
export const terminalLimit = 20

/** The first of a stream; null: all of it. onMore: called where there is at least one more. */
export async function* firstOf<Item>(
  items: AsyncIterable<Item>,
  limit: number | null,
  onMore: () => void,
): AsyncGenerator<Item> {
  let left = limit ?? Number.POSITIVE_INFINITY
  for await (const item of items) {
    if (left-- === 0) return onMore()
    yield item
  }
}
