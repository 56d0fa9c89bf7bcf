const code = (character: string): number => character.charCodeAt(0)

/** The characters that structure JSON, as UTF-16 units: a scan compares numbers. */
export const units = Object.freeze({
  quote: code('"'),
  backslash: code('\\'),
  comma: code(','),
  colon: code(':'),
  openBrace: code('{'),
  closeBrace: code('}'),
  openBracket: code('['),
  closeBracket: code(']'),
})

/** Tells whether a unit is what JSON takes for white space. */
export const isSpace = (unit: number): boolean => unit === 0x20 || unit === 0x0a || unit === 0x0d || unit === 0x09

/** The first place from an offset on that is no white space. */
export function skipSpace(text: string, from: number): number {
  let at = from
  while (isSpace(text.charCodeAt(at))) at++
  return at
}
