import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { expect, it, onTestFinished } from 'vitest'
import type { Beating } from '../../src/core/beat.ts'
import { beatInThread } from '../../src/core/beat-thread.ts'
import { systemClock } from '../../src/core/clock.ts'
import { defaults } from '../../src/core/defaults.ts'
import { OpeningGate } from '../../src/core/opening-gate.ts'
import { tableNames } from '../../src/core/store/names.ts'

/** A server that takes connections and says nothing. */
async function silentServer(): Promise<{ readonly server: Server; readonly url: string }> {
  const server = createServer()
  onTestFinished(() => void server.close())
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as { readonly port: number }
  return { server, url: `postgres://khepri@127.0.0.1:${port}/khepri` }
}

function beatFrom(url: string): Beating {
  const names = tableNames(defaults.table, defaults.failedTable)
  const options = { names, schema: undefined, label: url, prepare: true, deadlineMs: defaults.deadlineMs }
  const database = { kind: 'postgres', url, label: url } as const
  const { startBeat } = beatInThread({ database, options, worker: 'a', endsProcess: false, onBlocked: () => {} })
  return startBeat({
    clock: systemClock,
    everyMs: 10_000,
    beat: async () => {},
    state: () => ({ worker: 1, kind: 'working' }),
    heard: () => {},
  })
}

it('a thread that is opening its store is waited for: ended while it loads a driver it could take its process along', async () => {
  const { server, url } = await silentServer()
  const beating = beatFrom(url)
  const connected = once(server, 'connection') as Promise<[Socket]>
  beating.jobBegins()
  const [socket] = await connected
  const stopped = beating.stop().then(() => 'stopped')
  expect(await Promise.race([stopped, setTimeout(500, 'waiting')])).toBe('waiting')
  socket.destroy()
  expect(await stopped).toBe('stopped')
})

it('a thread that has not come that far is ended at once', async () => {
  const { server, url } = await silentServer()
  let connections = 0
  server.on('connection', () => connections++)
  const beating = beatFrom(url)
  beating.jobBegins()
  await beating.stop()
  expect(connections).toBe(0)
})

it('a gate that was barred before the opening began stays shut, and the thread may be ended', () => {
  const gate = new OpeningGate()
  expect(gate.bar()).toBe(true)
  expect(new OpeningGate(gate.memory).begin()).toBe(false)
  expect(gate.bar()).toBe(true)
})

it('a gate whose opening has begun is not barred, neither then nor later', () => {
  const gate = new OpeningGate()
  const thread = new OpeningGate(gate.memory)
  expect(thread.begin()).toBe(true)
  expect(gate.bar()).toBe(false)
  thread.done()
  expect(gate.bar()).toBe(false)
  expect(thread.begin()).toBe(true)
})
