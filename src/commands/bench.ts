import { availableParallelism } from 'node:os'
import type { Khepri } from '../app.ts'
import { KhepriCommand } from '../cli/base-command.ts'
import { type BenchResult, measure } from '../cli/bench.ts'
import { printBench } from '../cli/bench-report.ts'
import { countFlag } from '../cli/flags.ts'
import { Interruption } from '../cli/interruption.ts'

type Scratch = Awaited<ReturnType<Khepri['scratch']>>

/** `khepri bench`: measures what this database gives, on tables of its own. */
export default class Bench extends KhepriCommand {
  static readonly id = 'bench'
  static readonly summary = 'Measure how fast jobs go in and out of this database, on scratch tables'
  static readonly description =
    'Tables of its own in the schema of the database, on SQLite a file of its own beside it; the jobs that are there are not touched. Takes about ten seconds, and leaves nothing behind, also after Ctrl-C.'
  static readonly examples = ['khepri bench', 'khepri bench --concurrency=10 --jobs=100000', 'khepri bench --json']
  static readonly args = {}
  static readonly flags = {
    jobs: countFlag({ summary: 'how many jobs are dispatched in batches and worked off; 20,000 unless given' }),
    concurrency: countFlag({
      char: 'c',
      summary: 'jobs that the worker runs at once; as the configuration says, else 1',
    }),
  }

  protected async run(): Promise<void> {
    const { flags } = await this.parse(Bench)
    const app = await this.app()
    const size = { jobs: flags.jobs ?? 20_000, concurrency: flags.concurrency ?? app.config.concurrency ?? 1 }
    const scratch = await app.scratch()
    const interruption = new Interruption(process)
    try {
      const { result, settings } = await this.#measure(scratch, size, interruption.signal)
      await printBench(this.output, { ...result, ...size, settings: { ...settingsOf(app), ...settings } })
    } catch (error) {
      if (!interruption.signal.aborted || error !== interruption.signal.reason) throw error
      this.say('Stopped; nothing of the measurement is left in the database')
      this.exitWith(interruption.status)
    } finally {
      interruption.close()
    }
  }

  async #measure(scratch: Scratch, size: { readonly jobs: number; readonly concurrency: number }, signal: AbortSignal) {
    try {
      const maker = scratch.open({})
      await maker.migrate().finally(() => maker.close())
      this.say(`Measuring on ${scratch.name} in ${maker.config.database.label}; Ctrl-C stops`)
      const onPart = (label: string) => this.progress(label, 'job')
      const result: BenchResult = await measure({ open: scratch.open, signal, onPart }, size)
      return { result, settings: await scratch.settings() }
    } finally {
      await this.#remove(scratch)
    }
  }

  /** Who cannot take it away says what is left, and why. */
  async #remove(scratch: Scratch): Promise<void> {
    try {
      await scratch.remove()
    } catch (error) {
      this.say(`What begins with ${scratch.name} is left in the database`)
      throw error
    }
  }
}

/** What of this process and its configuration decides how fast it is. */
function settingsOf({ config }: Khepri): Readonly<Record<string, string>> {
  const { database, prepare } = config
  return {
    database: database.label,
    Node: `${process.versions.node}, ${availableParallelism()} cores`,
    ...(database.kind === 'postgres' && { prepare: String(prepare) }),
  }
}
