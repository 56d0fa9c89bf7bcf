import { hostname } from 'node:os'
import type { Events } from '../core/events.ts'
import type { Listing, Output } from './output.ts'

/** A slot that has led to a job. */
export type Fired = Events['schedule.fired']

/** How this process is named among those that look after schedules. */
export const tickerName = (): string => `${hostname()}-${process.pid}`

/** How the jobs of one look are listed. */
export function firedListing(output: Output): Listing<Fired> {
  return {
    columns: [
      { title: 'ID', value: ({ id }) => String(id) },
      { title: 'Schedule', value: ({ schedule }) => schedule },
      { title: 'Job', value: ({ job }) => job },
      { title: 'Queue', value: ({ queue }) => queue },
      { title: 'Slot', value: ({ slot }) => output.moment(slot) },
    ],
    record: ({ slot, ...fired }) => ({ ...fired, slot: output.moment(slot) }),
  }
}
