import { closeSync, fstatSync, openSync, readSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { LedgerLine } from './history.ts'

/** The variable by which a worker process is told the name that its lines carry. */
export const workerVariable = 'LEDGER_WORKER'

/**
 * The text of a job module that carries out plans (see `step.ts`) and writes down what it does.
 *
 * Each line is one write to a file that is open for appending: lines of several processes never mix, none is half, and
 * none is lost with its process.
 */
export const stepModule = `
import { openSync, writeSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'
import { step } from ${JSON.stringify(fileURLToPath(new URL('step.ts', import.meta.url)))}

const ledger = openSync(new URL('../ledger', import.meta.url), 'a')
const never = new Int32Array(new SharedArrayBuffer(4))
const world = {
  worker: process.env.${workerVariable},
  pid: process.pid,
  now: () => Date.now(),
  wait: (ms, signal) => wait(ms, undefined, { signal }).catch(() => {}),
  block: (ms) => void Atomics.wait(never, 0, 0, ms),
  note: (line) => void writeSync(ledger, JSON.stringify(line) + '\\n'),
  crash: () => {
    process.kill(process.pid, 'SIGKILL')
    return new Promise(() => {})
  },
}
export default (plan, context) => step(plan, context, world)
`

/** The ledger of a campaign, as it grows. */
export class LedgerFile {
  readonly #path: string
  readonly #lines: LedgerLine[] = []
  #offset = 0

  constructor(path: string) {
    this.#path = path
    writeFileSync(path, '')
  }

  /** All lines so far. */
  get lines(): readonly LedgerLine[] {
    this.takeNew()
    return this.#lines
  }

  /** The lines that came since the last look. */
  takeNew(): readonly LedgerLine[] {
    const bytes = readFrom(this.#path, this.#offset)
    // A write may be seen while it is under way; the rest of its line comes with the next look.
    const whole = bytes.subarray(0, bytes.lastIndexOf('\n') + 1)
    this.#offset += whole.length
    const texts = whole.toString().split('\n').slice(0, -1)
    const lines = texts.map((text) => JSON.parse(text) as LedgerLine)
    for (const line of lines) this.#lines.push(line)
    return lines
  }
}

function readFrom(path: string, offset: number): Buffer {
  const file = openSync(path, 'r')
  try {
    const bytes = Buffer.alloc(Math.max(0, fstatSync(file).size - offset))
    return bytes.subarray(0, readSync(file, bytes, 0, bytes.length, offset))
  } finally {
    closeSync(file)
  }
}
