import { isKhepriError, KhepriError } from './errors.ts'

/** What one check found: all is well, something is worth a thought, or khepri cannot work like this. */
export type Finding =
  | { readonly check: string; readonly state: 'ok'; readonly text: string }
  | { readonly check: string; readonly state: 'warning'; readonly text: string; readonly fix: string }
  | { readonly check: string; readonly state: 'fault'; readonly error: KhepriError }

/** A check that found nothing wrong. */
export function ok(check: string, text: string): Finding {
  return { check, state: 'ok', text }
}

/** A check that found something which may be meant. */
export function warning(check: string, text: string, fix: string): Finding {
  return { check, state: 'warning', text, fix }
}

/** A check that found a fault; what khepri did not throw on purpose counts as a bug of its own. */
export function fault(check: string, thrown: unknown): Finding {
  const error = isKhepriError(thrown)
    ? thrown
    : new KhepriError('BUG', `the check "${check}" itself broke: ${String(thrown)}`, {
        fix: 'please report it, with the output of khepri doctor --report',
        cause: thrown,
      })
  return { check, state: 'fault', error }
}

/** Makes a check; what it throws is its finding. */
export async function examined(check: string, examine: () => Finding | Promise<Finding>): Promise<Finding> {
  try {
    return await examine()
  } catch (error) {
    return fault(check, error)
  }
}
