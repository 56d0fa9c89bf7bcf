import { KhepriCommand } from '../../cli/base-command.ts'
import { countFlag, durationFlag, textFlag } from '../../cli/flags.ts'
import { scheduleArgument, scheduleNamed } from '../../cli/known-schedules.ts'
import { firstOf, terminalLimit } from '../../cli/limited.ts'
import type { Listing } from '../../cli/output.ts'
import { checkTimezone, isoTime, parseZonedTime } from '../../cli/time.ts'
import { KhepriError } from '../../core/errors.ts'
import { type Simulated, type Simulation, simulate } from '../../schedule/simulate.ts'

const weekMs = 7 * 86_400_000

/** `khepri schedule simulate`: every firing before it happens. */
export default class ScheduleSimulate extends KhepriCommand {
  static readonly id = 'schedule simulate'
  static readonly summary = 'Show every firing of a span of time before it happens'
  static readonly description =
    'Of one schedule or of all, a week from now on unless --from and --to say otherwise. Marks: "gap" stands for times that the clocks skip, "doubled" for a time that they show twice, of which the first is taken, "overlap" for a run that comes before the one before it need have ended, by --takes or by the timeout of the schedule. Looks at the configuration only.'
  static readonly examples = [
    'khepri schedule simulate nightly-rollup',
    'khepri schedule simulate --from=2026-03-28 --to=2026-04-01 --timezone=Europe/Oslo',
    'khepri schedule simulate nightly-rollup --zone=America/New_York --takes=2h',
  ]
  static readonly args = { name: scheduleArgument() }
  static readonly flags = {
    from: textFlag({ helpValue: 'TIME', summary: 'the beginning; now where none is given' }),
    to: textFlag({ helpValue: 'TIME', summary: 'the end, not included; a week later where none is given' }),
    zone: textFlag({
      helpValue: 'TZ',
      summary: "instead of the schedules' own time zones",
      parse: async (input) => checkTimezone(input, '--zone'),
    }),
    takes: durationFlag({ helpValue: '10m', summary: 'how long a run takes' }),
    limit: countFlag({ summary: `so many firings at most; ${terminalLimit} at a terminal, otherwise all` }),
  }

  protected async run(): Promise<void> {
    const { args, flags } = await this.parse(ScheduleSimulate)
    const simulation = simulationOf(flags)
    const app = await this.app()
    const name = args.name as string | undefined
    const schedules = name === undefined ? await app.schedules() : [await scheduleNamed(app, name)]
    const limit = flags.limit ?? (this.output.mode === 'terminal' ? terminalLimit : null)
    let hasMore = false
    const firings = firstOf(streamOf(simulate(schedules, simulation)), limit, () => {
      hasMore = true
    })
    const shown = await this.output.list(firings, this.#listing())
    if (shown === 0) this.say('Nothing fires in this time')
    if (hasMore) this.say(`There are more: --limit shows them`)
  }

  #listing(): Listing<Simulated> {
    return {
      columns: [
        { title: 'At', value: ({ at }) => this.output.moment(at) },
        { title: 'Local', value: ({ at, zone }) => isoTime(at, zone) },
        { title: 'Zone', value: ({ zone }) => zone },
        { title: 'Schedule', value: ({ schedule }) => schedule },
        { title: 'Marks', value: (firing) => marksOf(firing).join(', ') || '-' },
      ],
      record: ({ at, zone, schedule, ...marks }) => ({
        ...{ at: this.output.moment(at), local: isoTime(at, zone), zone, schedule },
        ...marks,
      }),
    }
  }
}

interface Given {
  readonly from: string | undefined
  readonly to: string | undefined
  readonly zone: string | undefined
  readonly takes: number | undefined
  readonly timezone: string | undefined
}

function simulationOf({ from, to, zone, takes, timezone }: Given): Simulation {
  const begin = from === undefined ? Date.now() : parseZonedTime(from, '--from', timezone)
  const end = to === undefined ? begin + weekMs : parseZonedTime(to, '--to', timezone)
  if (end <= begin) throw new KhepriError('USAGE', '--to must be later than --from')
  return { from: begin, to: end, zone, takesMs: takes ?? null }
}

const marksOf = (firing: Simulated): readonly string[] =>
  (['gap', 'doubled', 'overlap'] as const).filter((mark) => firing[mark])

async function* streamOf<Item>(items: Iterable<Item>): AsyncIterable<Item> {
  yield* items
}
