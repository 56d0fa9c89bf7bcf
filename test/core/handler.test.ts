import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { type Handler, handlerBrand, handlerOf, jobIn, type RunContext } from '../../src/core/handler.ts'
import { defineJob, Job, type JobContext, type Json, type StandardSchema } from '../../src/core/job.ts'

const handler = (job: unknown): Handler => handlerOf(job, './jobs/a.ts', '/srv/app')
const broken = (message: string): object => expect.objectContaining({ code: 'MODULE_BROKEN', message })

function aContext(): RunContext {
  return {
    id: 1,
    fence: 1,
    worker: 7,
    job: 'a',
    queue: 'default',
    attempt: 1,
    tries: 1,
    crashes: 0,
    dispatchedAt: 0,
    availableAt: 0,
    unique: null,
    schedule: null,
    scheduledFor: null,
    firedAt: null,
    missed: 0,
    payloadText: '{}',
    ...{ context: {}, traceparent: null, scope: undefined },
    signal: new AbortController().signal,
    log: () => {},
    keepOutput: () => {},
    release: () => {
      throw new Error('released')
    },
    next: async () => {},
  }
}

describe('a definition', () => {
  const job = defineJob<{ n: number }>({
    tries: 3,
    timeout: '30s',
    handle: ({ n }, { job: name }) => `${name} ${n}`,
    failed: (error, { id }, { n }) => [error, id, n],
  })

  test('runs handle with payload and context, and failed with error, context and payload', async () => {
    const { terms, run, failed } = handler(job)
    expect(terms).toEqual({ tries: 3, timeoutMs: 30_000 })
    expect(await run({ n: 7 }, aContext())).toBe('a 7')
    expect(await failed?.('why', aContext(), { n: 7 })).toEqual(['why', 1, 7])
  })

  test('may be written with this and without a hook', async () => {
    const { run, failed } = handler(
      defineJob({
        handle() {
          return this.tries
        },
        tries: 2,
      }),
    )
    expect(await run(null, aContext())).toBe(2)
    expect(failed).toBeNull()
  })

  test('a handle that throws at once rejects like one that rejects', async () => {
    const { run } = handler(
      defineJob({
        handle: () => {
          throw new Error('at once')
        },
      }),
    )
    await expect(run(null, aContext())).rejects.toThrow('at once')
  })

  test('is recognised by its brand, also when another copy of khepri made it', async () => {
    const foreign = { [Symbol.for('khepri.job')]: true, handle: () => 'foreign' }
    expect(await handler(foreign).run(null, aContext())).toBe('foreign')
  })

  test('refuses wrong terms with source and path, and a missing handle', () => {
    expect(() => handler(defineJob({ tries: 0, handle: () => 1 }))).toThrow(
      broken('./jobs/a.ts: tries must be a whole number of at least 1, got 0'),
    )
    expect(() => handler({ [Symbol.for('khepri.job')]: true })).toThrow(broken('./jobs/a.ts has no handle()'))
    expect(() => handler(defineJob({ schema: {} as StandardSchema<unknown>, handle: () => 1 }))).toThrow(
      broken('the schema of ./jobs/a.ts is not a Standard Schema'),
    )
  })
})

describe('a schema', () => {
  test('gives its output to the handler, and its issues with their paths', async () => {
    const { check, hasSchema } = handler(
      defineJob({ schema: z.object({ user: z.object({ id: z.coerce.number() }) }), handle: () => 1 }),
    )
    expect(hasSchema).toBe(true)
    expect(await check({ user: { id: '7' } })).toEqual({ ok: true, value: { user: { id: 7 } } })
    expect(await check({ user: { id: 'x' } })).toEqual({ ok: false, issues: [expect.stringMatching(/^user\.id: /)] })
  })

  test('that throws, or rejects, refuses the payload and says so', async () => {
    const throwing = {
      '~standard': {
        version: 1,
        vendor: 'x',
        validate: () => {
          throw new Error('broken\nschema')
        },
      },
    } as StandardSchema<unknown>
    const rejecting = {
      '~standard': {
        version: 1,
        vendor: 'x',
        validate: async () => {
          throw new Error('late')
        },
      },
    } as unknown as StandardSchema<unknown>
    expect(await handler(defineJob({ schema: throwing, handle: () => 1 })).check(1)).toEqual({
      ok: false,
      issues: ['the schema threw broken schema'],
    })
    expect(await handler(defineJob({ schema: rejecting, handle: () => 1 })).check(1)).toEqual({
      ok: false,
      issues: ['the schema threw late'],
    })
  })

  test('may be a function, as those of arktype are, and name steps as objects', async () => {
    const schema = Object.assign(() => {}, {
      '~standard': {
        version: 1 as const,
        vendor: 'x',
        validate: () => ({ issues: [{ message: 'no', path: [{ key: 'a' }, 0] }] }),
      },
    })
    expect(await handler(defineJob({ schema, handle: () => 1 })).check(1)).toEqual({ ok: false, issues: ['a.0: no'] })
  })

  test('shows 10 issues at most', async () => {
    const { check } = handler(defineJob({ schema: z.array(z.number()), handle: () => 1 }))
    expect(await check(Array.from({ length: 50 }, () => 'x'))).toMatchObject({ ok: false, issues: { length: 10 } })
  })

  test('that is not there lets everything pass without a promise', () => {
    const { check, hasSchema } = handler(defineJob({ handle: () => 1 }))
    expect([check('x'), hasSchema]).toEqual([{ ok: true, value: 'x' }, false])
  })
})

describe('a class', () => {
  class Welcome extends Job {
    static override readonly queue = 'mail'
    static override readonly tries = 5
    static built = 0
    readonly userId: number
    readonly name: string

    constructor(userId: number, name: string) {
      super()
      Welcome.built++
      this.userId = userId
      this.name = name
    }

    handle(): unknown {
      return [this.userId, this.name, this.context.id]
    }

    override failed(error: unknown): unknown {
      return [error, this.userId, this.context.job]
    }
  }

  test('is rebuilt from its payload without a call of its constructor', async () => {
    const { terms, run, failed } = handler(Welcome)
    expect(terms).toEqual({ queue: 'mail', tries: 5 })
    expect(await run({ userId: 7, name: 'Ann' }, aContext())).toEqual([7, 'Ann', 1])
    expect(await failed?.('why', aContext(), { userId: 7 })).toEqual(['why', 7, 'a'])
    expect(Welcome.built).toBe(0)
  })

  test('stores its own enumerable properties, the context apart', () => {
    const job = new Welcome(7, 'Ann')
    Object.defineProperty(job, 'context', { value: aContext(), enumerable: true })
    expect(handler(Welcome).toPayload?.(job)).toEqual({ userId: 7, name: 'Ann' })
  })

  test('a member __proto__, constructor, handle or context of a payload changes nothing but itself', async () => {
    class Plain extends Job {
      handle(): unknown {
        return [
          Object.getPrototypeOf(this) === Plain.prototype,
          'polluted' in this,
          Object.keys(this).sort(),
          this.context.id,
        ]
      }
    }
    const payload: unknown = JSON.parse('{"__proto__":{"polluted":1},"constructor":1,"handle":2,"context":3}')
    expect(await handler(Plain).run(payload, aContext())).toEqual([
      true,
      false,
      ['__proto__', 'constructor', 'handle'],
      1,
    ])
  })

  test('may say itself what is stored and how it is rebuilt', async () => {
    class Dated extends Job {
      readonly at: Date
      constructor(at: Date) {
        super()
        this.at = at
      }
      static override fromPayload(payload: unknown): Dated {
        return new Dated(new Date(payload as string))
      }
      override toPayload(): Json {
        return this.at.toISOString()
      }
      handle(): unknown {
        return this.at.getUTCFullYear()
      }
    }
    const { run, toPayload, check, failed } = handler(Dated)
    const payload = toPayload?.(new Dated(new Date('2031-01-01T00:00:00Z')))
    expect(payload).toBe('2031-01-01T00:00:00.000Z')
    expect(await check(payload)).toEqual({ ok: true, value: payload })
    expect(await run(payload, aContext())).toBe(2031)
    expect(failed).toBeNull()
  })

  test('whose fromPayload answers with a subclass runs that one', async () => {
    class Shape extends Job {
      static override fromPayload(payload: unknown): Shape {
        return payload === 'round' ? new Circle() : new Shape()
      }
      handle(): string {
        return 'shape'
      }
    }
    class Circle extends Shape {
      override handle(): string {
        return 'circle'
      }
    }
    expect(await handler(Shape).run('round', aContext())).toBe('circle')
    expect(await handler(Shape).run('other', aContext())).toBe('shape')
  })

  test('without fromPayload takes objects only', async () => {
    for (const payload of [null, 7, 'x', [1]])
      expect(await handler(Welcome).check(payload)).toMatchObject({ ok: false })
    expect(await handler(Welcome).check({})).toEqual({ ok: true, value: {} })
  })

  test('without a method handle is refused', () => {
    abstract class Empty extends Job {}
    expect(() => handler(Empty)).toThrow(broken('./jobs/a.ts has no method handle()'))
  })
})

test('a plain function is a job, with terms where it has such properties', async () => {
  const { terms, run } = handler(
    Object.assign(async (payload: never, { id }: JobContext) => [payload, id], { queue: 'slow' }),
  )
  expect(terms).toEqual({ queue: 'slow' })
  expect(await run({ n: 1 }, aContext())).toEqual([{ n: 1 }, 1])
})

test('another layer makes its own handlers, for the folder of the configuration', async () => {
  const layer = {
    terms: { queue: 'high' },
    [handlerBrand]: (root: string) => ({ ...handler(() => root), terms: { queue: 'high' } }),
  }
  expect(await handler(layer).run(null, aContext())).toBe('/srv/app')
})

describe('jobIn', () => {
  const job = defineJob({ handle: () => 1 })

  test('takes the default export, the only branded one, or what a compiler put inside the default', () => {
    expect(jobIn({ default: job, other: defineJob({ handle: () => 2 }) }, 'a')).toBe(job)
    expect(jobIn({ job, helper: 7 }, 'a')).toBe(job)
    expect(jobIn({ default: { __esModule: true, default: job } }, 'a')).toBe(job)
  })

  test.each([
    [{}, 'a exports no job: it exports nothing'],
    [{ helper: 7, other: () => 1 }, 'a exports no job: it exports only helper, other'],
    [{ default: 7 }, 'a exports no job: its default export is a value of type number'],
    [{ default: null }, 'a exports no job: its default export is null'],
    [
      {
        default: class Foo {
          handle(): void {}
        },
      },
      'a exports no job: its default export is a class that does not extend Job',
    ],
    [
      { one: defineJob({ handle: () => 1 }), two: defineJob({ handle: () => 2 }) },
      'a exports no job: it has several (one, two) and none of them is the default export',
    ],
  ])('refuses %o and says what it found', (module, message) => {
    expect(() => jobIn(module, 'a')).toThrow(broken(message))
  })
})

describe('a generator', () => {
  test.each([
    ['a function', function* () {}, 'the handler'],
    ['an async function', async function* () {}, 'the handler'],
    ['handle() of a definition', defineJob({ *handle() {} }), 'handle()'],
    ['failed() of a definition', defineJob({ handle() {}, async *failed() {} }), 'failed()'],
    [
      'handle() of a class',
      class extends Job {
        *handle() {}
      },
      'handle()',
    ],
  ])('as %s is refused when it is loaded, and not done without having run', (_, job, what) => {
    expect(() => handler(job)).toThrow(broken(`${what} of ./jobs/a.ts is a generator: calling it runs nothing`))
  })

  function* steps() {
    yield 1
  }

  test.each([
    ['a function', () => steps()],
    ['an async function', async () => steps()],
    ['a definition', defineJob({ handle: () => steps() })],
  ])('that %s returns fails the attempt', async (_, job) => {
    await expect(handler(job).run({}, aContext())).rejects.toThrow('the handler returned a generator')
  })

  test('is not mistaken for another thing that can be iterated', async () => {
    expect(await handler(() => [1, 2]).run({}, aContext())).toEqual([1, 2])
  })
})
