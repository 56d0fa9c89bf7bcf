import type { Seeded } from '../simulation/seeded.ts'

/** Pieces that parsers have been seen to stumble over. */
const awkward: readonly [string, ...string[]] = [
  '',
  ' ',
  '\n',
  '\r\n',
  '\t',
  '\0',
  '\u001b[31m',
  '\u0007',
  '\ufeff',
  '\u2028',
  '\ud800',
  '\udc00',
  '🐸',
  '\\u0000',
  '\\ud800',
  '\\',
  '"',
  '""',
  "'",
  '{',
  '}',
  '[',
  ']',
  ',',
  ':',
  '{}',
  '[]',
  'null',
  'true',
  'NaN',
  'Infinity',
  '-0',
  '1e999',
  '-1',
  '0',
  '0.1',
  '9007199254740993',
  '99999999999999999999',
  '1e3',
  '0x10',
  '01',
  '5m',
  '-5m',
  '1h30m',
  '1y',
  '∞',
  '__proto__',
  'constructor',
  'toString',
  '"__proto__":{"isAdmin":true}',
  '$ref',
  '%s%n',
  '../',
  '*',
  '@',
  '--',
  '-',
  '=',
  ':=',
  '//',
  '/*',
  '2026-02-30T25:61:61Z',
  '2026-11-30T14:02:11.083Z',
  '+275760-09-13T00:00:00.001Z',
]

/** Changes a text in a few places, as accidents and attackers do; sometimes not at all. */
export function mutated(text: string, dice: Seeded): string {
  let changed = text
  for (let left = dice.whole(0, 4); left > 0; left--) changed = changedOnce(changed, dice)
  return changed
}

function changedOnce(text: string, dice: Seeded): string {
  const from = dice.whole(0, text.length)
  const to = Math.min(text.length, from + dice.whole(0, dice.chance(0.1) ? text.length : 6))
  const [before, piece, after] = [text.slice(0, from), text.slice(from, to), text.slice(to)]
  switch (dice.whole(0, 7)) {
    case 0:
      return before + after
    case 1:
      return before + piece + piece + after
    case 2:
      return before + String.fromCodePoint(dice.whole(0, dice.chance(0.2) ? 0x10ffff : 0x17f)) + after
    case 3:
      return before + after.slice(0, 3) + piece + after.slice(3)
    case 4:
      return before + piece.repeat(dice.whole(1, 50)) + after
    case 5:
      return before + nested(dice) + after
    default:
      return before + dice.pick(awkward) + (dice.chance(0.5) ? piece : '') + after
  }
}

/** Deeper than a recursive function may go, now and then. */
function nested(dice: Seeded): string {
  const depth = dice.chance(0.02) ? 20_000 : dice.whole(1, 1_200)
  return dice.chance(0.5) ? '['.repeat(depth) + ']'.repeat(depth) : `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`
}

/** An awkward word, as it stands or inside another one. */
export function awkwardWord(dice: Seeded): string {
  return dice.chance(0.5) ? dice.pick(awkward) : mutated(dice.pick(awkward), dice)
}

/** Any JSON value, as text; members and elements become fewer with depth. */
export function anyJson(dice: Seeded, depth = 0): string {
  const kind = dice.whole(0, depth > 4 ? 4 : 6)
  if (kind === 0) return dice.pick(['null', 'true', 'false'])
  if (kind === 1) return String(dice.whole(-1_000, 1_000))
  if (kind === 2) return dice.pick(['1e308', '-0', '0.1', '9007199254740993', '12345678901234567890', '1E5'])
  if (kind <= 4) return JSON.stringify(dice.pick(awkward))
  const items = Array.from({ length: dice.whole(0, 4) }, () => anyJson(dice, depth + 1))
  return kind === 5
    ? `[${items.join(',')}]`
    : `{${items.map((item, n) => `${JSON.stringify(dice.chance(0.2) ? dice.pick(awkward) : `k${n}`)}:${item}`).join(',')}}`
}

/** A text as bytes, of which a few may be no UTF-8 any more. */
export function bytesOf(text: string, dice: Seeded): Buffer {
  const bytes = Buffer.from(text)
  if (bytes.length > 0 && dice.chance(0.1)) bytes[dice.whole(0, bytes.length - 1)] = dice.whole(0, 255)
  return bytes
}
