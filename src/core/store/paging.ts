import type { JobId } from './store.ts'

/** Jobs read at once: the first come soon, and no more than so many are ever in memory. */
const pageSize = 500

/**
 * Streams jobs page by page, the newest id first; at most `limit` (null: all).
 *
 * read: the next page, of at most `size` jobs with ids below `below`.
 */
export async function* inPages<Item extends { readonly id: JobId }>(
  limit: number | null,
  read: (below: JobId, size: number) => Promise<readonly Item[]>,
): AsyncGenerator<Item> {
  let below = Number.MAX_SAFE_INTEGER
  for (let left = limit ?? Number.POSITIVE_INFINITY; left > 0; ) {
    const size = Math.min(left, pageSize)
    const page = await read(below, size)
    yield* page
    if (page.length < size) return
    left -= page.length
    below = page.at(-1)?.id ?? 0
  }
}
