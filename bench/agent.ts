import { type Calls, calls } from './calls.ts'
import { contestantNamed } from './contestants.ts'
import { countingHandle } from './handlers.ts'
import type { Client, Peer, Place } from './peer.ts'

/**
 * One process of a contestant: `agent.js STORE NAME PLACE ROLE CONCURRENCY`.
 *
 * client: answers calls. work: works at once. gated: loads, and works when it is told to.
 */

/** What an agent is asked. */
export interface Request {
  readonly id: number
  readonly call: keyof Calls | 'prepare' | 'go' | 'stop'
  readonly parameters: unknown
}

/** What it answers. */
export interface Answer {
  readonly kind: 'answer'
  readonly id: number
  readonly value?: unknown
  readonly error?: string
}

const [store = '', name = '', placeText = '', role = '', concurrencyText = ''] = process.argv.slice(2)
const place = JSON.parse(placeText) as Place
const concurrency = concurrencyText === '' ? null : Number(concurrencyText)
const { adapter } = contestantNamed(store, name)
const { peer } = (await import(`./${adapter}.js`)) as { readonly peer: Peer }

function work(): Promise<{ stop(): Promise<void> }> {
  return peer.drain(place, concurrency, countingHandle())
}

let client: Promise<Client> | null = null
let working = role === 'work' ? work() : null

async function answer({ call, parameters }: Request): Promise<unknown> {
  switch (call) {
    case 'prepare':
      return peer.prepare(place)
    case 'go':
      working ??= work()
      await working
      return undefined
    case 'stop':
      await (await working)?.stop()
      await (await client)?.close()
      return undefined
    default:
      client ??= peer.open(place)
      return calls[call](await client, parameters as never)
  }
}

process.on('message', (request: Request) => {
  const send = (rest: Partial<Answer>): boolean | undefined =>
    process.send?.({ kind: 'answer', id: request.id, ...rest } satisfies Answer)
  answer(request).then(
    (value) => send({ value }),
    (error: unknown) => send({ error: error instanceof Error ? (error.stack ?? error.message) : String(error) }),
  )
})
process.on('disconnect', () => process.exit(0))
process.send?.({ kind: 'ready' })
