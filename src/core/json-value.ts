import { defaults } from './defaults.ts'
import { KhepriError } from './errors.ts'

/**
 * Writes a value as JSON text, refusing whatever would not come back the same: functions, symbols, BigInt, NaN and
 * infinities, dates, maps, sets and other class instances, holes, cycles, more than 1,000 levels. Members of objects that
 * are undefined are left out, as JSON.stringify does; in arrays undefined is refused, where JSON would make null of it.
 *
 * Throws PAYLOAD_REFUSED naming the path of the first such value: "payload.user.since is a Date".
 */
export function jsonTextOf(value: unknown): string {
  check(value, 'payload', [])
  return JSON.stringify(value)
}

function check(value: unknown, path: string, ancestors: readonly object[]): void {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return
  if (typeof value === 'number' && Number.isFinite(value)) return
  if (typeof value !== 'object') throw refused(path, describe(value))
  if (ancestors.includes(value)) throw refused(path, 'a reference to something that contains it')
  if (ancestors.length >= defaults.maxDepth)
    throw new KhepriError('PAYLOAD_REFUSED', `the payload is nested more than ${defaults.maxDepth} levels deep`)
  const inside = [...ancestors, value]
  // Not forEach: it passes over the holes, which JSON would turn into null.
  if (Array.isArray(value))
    for (let index = 0; index < value.length; index++) check(value[index], `${path}[${index}]`, inside)
  else if (isPlain(value))
    for (const [key, each] of Object.entries(value)) {
      if (each !== undefined) check(each, `${path}.${key}`, inside)
    }
  else throw refused(path, describe(value))
}

function isPlain(value: object): boolean {
  if (typeof (value as { toJSON?: unknown }).toJSON === 'function') return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === null || prototype === Object.prototype || Object.getPrototypeOf(prototype) === null
}

function describe(value: unknown): string {
  if (value === undefined) return 'undefined'
  if (typeof value === 'number') return String(value)
  if (typeof value !== 'object' || value === null) return `a ${typeof value}`
  return `a ${value.constructor?.name || 'class instance'}`
}

const refused = (path: string, what: string): KhepriError =>
  new KhepriError('PAYLOAD_REFUSED', `${path} is ${what}, which JSON cannot hold`, {
    fix: 'convert it to a string, number, plain object or array first',
  })
