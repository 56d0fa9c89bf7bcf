import type { DispatchArguments, DispatchCall, JobMap } from './dispatch-call.ts'
import { KhepriError } from './errors.ts'
import type { Enqueued } from './store/store.ts'

type Dispatch = DispatchCall<JobMap, Promise<Enqueued>>

let chosen: ((...call: DispatchArguments) => Promise<Enqueued>) | null = null

/** Makes this what `dispatch` calls; the result ends it, unless something else was chosen since. */
export function chooseDispatch(put: (...call: DispatchArguments) => Promise<Enqueued>): () => void {
  chosen = put
  return () => {
    if (chosen === put) chosen = null
  }
}

/** Puts one job into the installation that was chosen with `khepri.use()`; otherwise as `khepri.dispatch`. */
export const dispatch = (async (...call: DispatchArguments) => {
  if (chosen !== null) return chosen(...call)
  throw new KhepriError('USAGE', 'dispatch() was called before any khepri was chosen', {
    fix: 'call khepri.use() where it is made, or khepri.dispatch()',
  })
}) as Dispatch
