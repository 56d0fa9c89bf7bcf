import { type ErrorCode, KhepriError } from './errors.ts'
import { didYouMean } from './suggest.ts'
import { shown } from './text.ts'

/** What is being read: how messages name it ("" for the thing itself), and the code of its faults. */
interface Reading {
  readonly what: string
  readonly code: ErrorCode
}

/** Throws, with a suggestion, at the first key that is not known. */
export function refuseStrangers(input: object, known: readonly string[], { what, code }: Reading): void {
  const stranger = Object.keys(input).find((key) => !known.includes(key))
  if (stranger === undefined) return
  const key = what === '' ? shown(stranger) : `${shown(stranger)} in ${what}`
  throw new KhepriError(code, `unknown key ${key}${didYouMean(stranger, known)}`, {
    fix: `known are ${known.join(', ')}`,
  })
}
