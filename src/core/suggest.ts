const longestWord = 100

/** The known word that is nearest to a mistyped one, if any is near enough; upper and lower case alike. */
export function suggest(word: string, known: Iterable<string>): string | undefined {
  if (word.length > longestWord) return undefined
  let best: string | undefined
  let bestDistance = Math.max(1, Math.floor(word.length / 3)) + 1
  for (const each of known) {
    if (each.length > longestWord || Math.abs(each.length - word.length) >= bestDistance) continue
    const distance = editDistance(word.toLowerCase(), each.toLowerCase())
    if (distance < bestDistance) [best, bestDistance] = [each, distance]
  }
  return best
}

/** `. Did you mean "x"?` to put behind a sentence, or nothing. */
export function didYouMean(word: string, known: Iterable<string>): string {
  const found = suggest(word, known)
  return found === undefined ? '' : `. Did you mean ${JSON.stringify(found)}?`
}

/**
 * Counts the insertions, deletions, replacements and exchanges of neighbours that turn one word into another.
 *
 * Source: the "optimal string alignment" form of F. Damerau's distance, 1964.
 */
export function editDistance(from: string, to: string): number {
  let older: number[] = []
  let previous = Array.from({ length: to.length + 1 }, (_, index) => index)
  for (let i = 1; i <= from.length; i++) {
    const row = [i]
    for (let j = 1; j <= to.length; j++) {
      const replaced = at(previous, j - 1) + (from[i - 1] === to[j - 1] ? 0 : 1)
      const swapped =
        i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1] ? at(older, j - 2) + 1 : Infinity
      row.push(Math.min(at(previous, j) + 1, at(row, j - 1) + 1, replaced, swapped))
    }
    older = previous
    previous = row
  }
  return at(previous, to.length)
}

const at = (row: readonly number[], index: number): number => row[index] ?? Infinity
