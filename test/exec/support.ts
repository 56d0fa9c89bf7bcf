import { chmodSync } from 'node:fs'
import { join } from 'node:path'
import type { ExecutableOptions } from '../../src/core/executable.ts'
import { type HandlerSource, handlerBrand, type RunContext } from '../../src/core/handler.ts'
import { isNonRetryable, release, releaseOf } from '../../src/core/job.ts'
import { executableHandler } from '../../src/exec/handler.ts'
import { TempProject } from '../support/temp-project.ts'

/** How a run ended, in the terms of the kernel. */
export interface Outcome {
  readonly kind: 'done' | 'failed' | 'final' | 'released'
  readonly type: string | null
  readonly message: string | null
  readonly delay: unknown
  readonly output: string | null
}

let runs = 0

/** A folder with programs, and what a worker would do with them. */
export class Programs extends TempProject {
  /** Writes a file that may be executed. */
  program(name: string, text: string): string {
    const path = this.write(name, text)
    chmodSync(path, 0o755)
    return path
  }

  /** Runs a command once, as an attempt of a worker that nobody else is. */
  async run(
    command: string,
    options: Omit<ExecutableOptions, 'queue'> = {},
    context: Partial<RunContext> = {},
  ): Promise<Outcome> {
    const { args = [], cwd = '.', env = {} } = options
    const source: HandlerSource = executableHandler({ command, args, cwd, env })
    let output: string | null = null
    const keepOutput = (text: string): void => {
      output = text
    }
    try {
      await source[handlerBrand](this.path).run({}, { ...aContext(), keepOutput, ...context })
      return { kind: 'done', type: null, message: null, delay: null, output }
    } catch (error) {
      const { name, message } = error as Error
      const delay = releaseOf(error)
      const kind = delay !== undefined ? 'released' : isNonRetryable(error) ? 'final' : 'failed'
      return { kind, type: name, message, delay: delay ?? null, output }
    }
  }

  /** The same of a shell script. */
  script(text: string, context: Partial<RunContext> = {}): Promise<Outcome> {
    this.program('script.sh', `#!/bin/sh\n${text}\n`)
    return this.run('./script.sh', {}, context)
  }

  in(name: string): string {
    return join(this.path, name)
  }
}

function aContext(): RunContext {
  return {
    id: 7,
    fence: 3,
    worker: 10 ** 14 + ++runs,
    job: 'resize',
    queue: 'high',
    attempt: 2,
    tries: 5,
    crashes: 0,
    dispatchedAt: Date.UTC(2026, 0, 5, 9),
    availableAt: Date.UTC(2026, 0, 5, 10),
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
    release,
    next: async () => {},
  }
}
