import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { dispatchOnly } from '../examples/driver/http-driver.ts'
import { createKhepri, defineJob, dispatch, withContext } from '../src/index.ts'

/** Closes it after the test. */
function opened<K extends { close(): Promise<void> }>(khepri: K): K {
  onTestFinished(() => khepri.close())
  return khepri
}

const inProduction = (): void => {
  vi.stubEnv('NODE_ENV', 'production')
  onTestFinished(() => void vi.unstubAllEnvs())
}

describe('the sync driver', () => {
  it('runs a job where it is dispatched, delays or not, and what follows it', async () => {
    const ran: string[] = []
    const khepri = opened(
      createKhepri({
        database: 'sync:',
        jobs: {
          first: defineJob({
            async handle(_, { next, id }) {
              ran.push(`first ${id}`)
              await next('second')
            },
          }),
          second: () => void ran.push('second'),
        },
      }),
    )
    const { id } = await khepri.dispatch('first', {}, { delay: '1h' })
    expect(ran).toEqual(['first 1', 'second'])
    await khepri.dispatch('second', {}, { after: id })
    await expect(khepri.dispatch('second', {}, { after: 99 })).rejects.toMatchObject({ code: 'NOT_FOUND' })
  })

  it('tries again at once up to its tries, calls failed(), and gives the error to the caller', async () => {
    const heard: unknown[] = []
    const error = new Error('broken')
    const flaky = defineJob<{ readonly until: number }>({
      tries: 3,
      backoff: '1h',
      handle({ until }, { attempt }) {
        heard.push(attempt)
        if (attempt < until) throw error
      },
      failed: (thrown) => void heard.push(thrown),
    })
    const khepri = opened(createKhepri({ database: 'sync:', jobs: { flaky } }))
    await khepri.dispatch('flaky', { until: 3 })
    expect(heard.splice(0)).toEqual([1, 2, 3])
    await expect(khepri.dispatch('flaky', { until: 4 })).rejects.toBe(error)
    expect(heard).toEqual([1, 2, 3, error])
  })

  it('has nothing to work on, and no later for a job that asks for it', async () => {
    const later = defineJob({ handle: (_, { release }) => release('1h') })
    const khepri = opened(createKhepri({ database: 'sync:', jobs: { later } }))
    await expect(khepri.work()).rejects.toMatchObject({ code: 'USAGE' })
    await expect(khepri.dispatch('later')).rejects.toMatchObject({
      ...{ code: 'USAGE', message: 'later asked to run later, and sync: has no later' },
    })
  })

  it('is refused in production unless that is meant, at a dispatch and by the checks of doctor', async () => {
    inProduction()
    const jobs = { note: () => {} }
    const khepri = opened(createKhepri({ database: 'sync:', jobs }))
    await expect(khepri.dispatch('note')).rejects.toMatchObject({ code: 'CONFIG_INVALID' })
    expect(await khepri.checkup()).toMatchObject([{ check: 'database', state: 'fault' }])

    const meant = opened(createKhepri({ database: 'sync:', ephemeral: true, jobs }))
    expect(await meant.dispatch('note')).toEqual({ id: 1, duplicate: false })
    expect(await meant.checkup()).toMatchObject([{ check: 'database', state: 'ok' }])
  })
})

describe('the memory driver', () => {
  it('shows its size, its jobs and those that failed; draining it says how many ran', async () => {
    const fails = (): never => {
      throw new Error('broken')
    }
    const khepri = opened(createKhepri({ database: 'memory:', jobs: { note: () => {}, fails } }))
    await khepri.dispatch('note', { text: 'a' })
    await khepri.dispatch('fails', {}, { queue: 'other' })
    await khepri.dispatch('note', {}, { delay: '1h' })
    const memory = await khepri.memory()
    expect([memory.size, memory.failed]).toEqual([3, []])
    expect(memory.jobs[0]).toEqual({ id: 1, job: 'note', queue: 'default', payload: { text: 'a' } })

    expect(await memory.drain()).toBe(2)
    expect(memory.jobs.map(({ id }) => id)).toEqual([3])
    expect(memory.failed).toMatchObject([{ id: 2, job: 'fails', error: 'broken' }])
    expect(await memory.drain()).toBe(0)
  })

  it('takes closures, and so does sync; a durable one refuses them and says why', async () => {
    const ran: string[] = []
    const memory = opened(createKhepri({ database: 'memory:', jobs: { note: (_: { readonly n: number }) => {} } }))
    await memory.dispatch(() => void ran.push('in memory'))
    await (await memory.memory()).drain()
    const sync = opened(createKhepri({ database: 'sync:' }))
    await sync.dispatch(({ text }: { text: string }) => void ran.push(text), { text: 'at once' })
    expect(ran).toEqual(['in memory', 'at once'])

    const durable = opened(createKhepri({ database: 'sqlite:./never.db' }))
    await expect(durable.dispatch(() => {})).rejects.toMatchObject({
      code: 'JOB_UNKNOWN',
      message: 'a closure cannot be dispatched: its code would be lost with this process',
    })
  })

  it('warns once in production unless that is meant', async () => {
    inProduction()
    const warnings: string[] = []
    const listen = ({ name, message }: Error): void => void (name === 'KhepriWarning' && warnings.push(message))
    process.on('warning', listen)
    onTestFinished(() => void process.off('warning', listen))
    await opened(createKhepri({ database: 'memory:', ephemeral: true })).store()
    const khepri = opened(createKhepri({ database: 'memory:' }))
    const warned = once(process, 'warning')
    await Promise.all([khepri.store(), khepri.admin()])
    await warned
    expect(warnings).toEqual([expect.stringContaining('end with this process')])
  })

  it('is nothing that other databases have', async () => {
    const khepri = opened(createKhepri({ database: 'sync:' }))
    await expect(khepri.memory()).rejects.toMatchObject({ code: 'USAGE' })
  })
})

describe('a driver that only dispatches', () => {
  it('is one method: it gets checked rows, with the context of the dispatch', async () => {
    const bodies: unknown[] = []
    const server = createServer(async (request, response) => {
      bodies.push(JSON.parse(await text(request)))
      response.end(JSON.stringify([{ id: 7, duplicate: false }]))
    }).listen(0, '127.0.0.1')
    onTestFinished(() => void server.close())
    await once(server, 'listening')
    const khepri = dispatchOnly(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)

    const answer = await withContext({ context: { tenant: 'a' } }, () =>
      khepri.dispatch('send-welcome', { userId: 7 }, { queue: 'mail', delay: '1m' }),
    )
    expect(answer).toEqual({ id: 7, duplicate: false })
    expect(bodies).toMatchObject([[{ queue: 'mail', priority: 0, due: { delayMs: 60_000 } }]])
    const { envelope } = (bodies[0] as { envelope: string }[])[0] as { envelope: string }
    expect(JSON.parse(envelope)).toMatchObject({
      job: 'send-welcome',
      payload: { userId: 7 },
      context: { tenant: 'a' },
    })
    await expect(khepri.dispatch('send-welcom' as never)).rejects.toMatchObject({ code: 'JOB_UNKNOWN' })
    await khepri.close()
  })

  it('runs nothing and lists nothing', async () => {
    const khepri = createKhepri({ jobs: {} }, { driver: { enqueue: async () => [] } })
    const refusal = { code: 'USAGE', message: 'this khepri has a driver that only dispatches' }
    await expect(khepri.work()).rejects.toMatchObject(refusal)
    await expect(khepri.admin()).rejects.toMatchObject(refusal)
    await expect(khepri.migrate()).rejects.toMatchObject(refusal)
  })
})

describe('use()', () => {
  it('makes an installation the one that dispatch() puts jobs into, until it is closed', async () => {
    const ran: string[] = []
    const khepri = createKhepri({ database: 'sync:', jobs: { note: () => void ran.push('note') } })
    await expect(dispatch('note')).rejects.toMatchObject({ code: 'USAGE' })
    khepri.use()
    await dispatch('note')
    expect(ran).toEqual(['note'])
    await khepri.close()
    await expect(dispatch('note')).rejects.toMatchObject({ code: 'USAGE' })
  })
})
