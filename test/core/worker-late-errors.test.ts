import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { Gate, Workshop } from './support/workshop.ts'

const program = fileURLToPath(new URL('./programs/late-errors.ts', import.meta.url))

it('an error from a timer or a promise of a handler is charged to its job, and to no other', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, ['--disable-warning=ExperimentalWarning', program])
  expect(JSON.parse(stdout)).toEqual({
    timer: 'failed: from a timer',
    promise: 'failed: from a promise',
    deep: 'failed: from deep inside',
    late: 'done',
    'late, late': 'after its job was done',
    bystander: 'done',
    'of nobody': 'from the program itself',
  })
})

/** A handler that hands an error to its worker from a callback of its own, and then stays at its gate. */
async function chargedFromWithin(gate: Gate, tries = 1) {
  const answers: boolean[] = []
  const charged = Promise.withResolvers<void>()
  const shop = await Workshop.open({
    leaky: (payload, context) => {
      setImmediate(() => {
        answers.push(worker.attribute(new Error('leaked')))
        charged.resolve()
      })
      return gate.ignoring(payload, context)
    },
  })
  const id = await shop.add('leaky', { tries, backoff: { kind: 'none' } })
  const worker = await shop.work({ concurrency: 2 })
  await charged.promise
  await shop.clock.advance(0)
  return { shop, id, worker, answers }
}

it('a charged error uses an attempt, aborts the signal with it, and outranks what the handler returns', async () => {
  const gate = new Gate()
  const { shop, id, worker, answers } = await chargedFromWithin(gate)
  expect(answers).toEqual([true])
  expect((await gate.entered).reason).toMatchObject({ message: 'leaked' })
  gate.open()
  await shop.clock.advance(0)
  expect(shop.state.failed.get(id)).toMatchObject({ reason: 'tries', error: 'leaked' })
  expect(await shop.drain(worker)).toMatchObject({ failed: 1, done: 0 })
})

it('the retry of a charged job does not run beside the handler that is still running', async () => {
  const gate = new Gate()
  const { shop, id, worker } = await chargedFromWithin(gate, 2)
  await shop.clock.advance(4_000)
  expect(gate.runs).toBe(1)
  expect(shop.state.jobs.get(id)).toMatchObject({ worker: null, failures: 1 })
  gate.open()
  await shop.clock.advance(1_000)
  expect(gate.runs).toBe(2)
  await shop.drain(worker)
})

it('a handler that ignores its signal after a charged error is stuck after 5 s', async () => {
  const gate = new Gate()
  const { shop, id, worker } = await chargedFromWithin(gate)
  await shop.clock.advance(5_000)
  expect(shop.all('job.stuck')).toMatchObject([{ id }])
  expect(await shop.drain(worker)).toMatchObject({ failed: 1, done: 0 })
})

it('an error of nobody is not charged to anybody', async () => {
  const gate = new Gate()
  const shop = await Workshop.open({ long: gate.obeying })
  await shop.add('long')
  const worker = await shop.work()
  expect(worker.attribute(new Error('from the program itself'))).toBe(false)
  gate.open()
  expect(await shop.drain(worker)).toMatchObject({ done: 1, failed: 0 })
})
