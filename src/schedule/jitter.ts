import { hash } from 'node:crypto'

/**
 * How long after its slots a schedule fires, so that five hundred of midnight spread: the same for a name everywhere
 * and always.
 *
 * maxMs: the bound, never reached. Result: whole milliseconds, 0 when `maxMs` is 0.
 */
export function jitterOf(name: string, maxMs: number): number {
  const share = hash('sha256', name, 'buffer').readUIntBE(0, 6) / 2 ** 48
  return Math.floor(share * maxMs)
}
