export type StoreName = 'sqlite' | 'postgres' | 'redis'

/** Who takes part. */
export interface Contestant {
  readonly name: string
  readonly store: StoreName
  /** khepri is compared with the best peer and with the limit; the limit is a few statements without a product. */
  readonly role: 'khepri' | 'peer' | 'limit'
  /** A file of peers/, without its ending. */
  readonly adapter: string
  /** Its workers are processes of its own command line. */
  readonly commandLine: boolean
  /** Whether a single add survives a power cut by its settings; limits and peers that differ are compared apart. */
  readonly durableAdds: boolean
  /** So many jobs are enough to see its rate: more would take minutes. */
  readonly mostJobs: number
  /** Whether the short form has it: it leaves out second settings of one product. */
  readonly inQuick: boolean
  /** Measures that it can't do, by name or beginning of a name, with the reason. */
  readonly without: Readonly<Record<string, string>>
}

const usual = {
  role: 'peer',
  commandLine: false,
  durableAdds: true,
  mostJobs: Number.POSITIVE_INFINITY,
  inQuick: true,
  without: {},
} as const
const limit = {
  ...usual,
  role: 'limit',
  without: {
    'drain-wait': 'a limit has no slots',
    'drain-failing': 'a limit has no retries',
    'pick-up': 'a limit has no wake-up',
    cold: 'a limit has no start',
    kill: 'a limit has no recovery',
  },
} as const
const khepri = { ...usual, role: 'khepri' } as const
const noBulk = { bulk: 'it has no bulk call' } as const
const deadlock = 'its enqueue holds one connection of its pool of ten and waits for another: fifty at once never end'
const onlyAdds = 'its setting matters for adds only'
const noRetries = { 'drain-failing': 'it does not try again' } as const

/** Everyone, in the order of the tables. */
export const contestants: readonly Contestant[] = [
  { ...khepri, name: 'khepri', store: 'sqlite', adapter: 'khepri' },
  { ...khepri, name: 'khepri work', store: 'sqlite', adapter: 'khepri-work', commandLine: true },
  { ...usual, name: 'plainjob', store: 'sqlite', adapter: 'plainjob', durableAdds: false, without: noRetries },
  {
    ...usual,
    name: 'plainjob FULL',
    store: 'sqlite',
    adapter: 'plainjob-full',
    without: {
      drain: onlyAdds,
      'pick-up': onlyAdds,
      idle: onlyAdds,
      cold: onlyAdds,
      kill: onlyAdds,
      snapshot: onlyAdds,
    },
  },
  {
    ...usual,
    name: 'liteque',
    store: 'sqlite',
    adapter: 'liteque',
    durableAdds: false,
    mostJobs: 400,
    without: noBulk,
  },
  { ...usual, name: 'sidequest', store: 'sqlite', adapter: 'sidequest', mostJobs: 150, without: noBulk },
  { ...limit, name: 'limit', store: 'sqlite', adapter: 'limit-sqlite' },
  { ...khepri, name: 'khepri', store: 'postgres', adapter: 'khepri' },
  { ...khepri, name: 'khepri work', store: 'postgres', adapter: 'khepri-work', commandLine: true },
  { ...usual, name: 'graphile-worker', store: 'postgres', adapter: 'graphile-worker', inQuick: false },
  { ...usual, name: 'graphile-worker tuned', store: 'postgres', adapter: 'graphile-worker-tuned' },
  { ...usual, name: 'pg-boss', store: 'postgres', adapter: 'pg-boss', inQuick: false },
  { ...usual, name: 'pg-boss tuned', store: 'postgres', adapter: 'pg-boss-tuned' },
  { ...usual, name: 'BullMQ on Postgres', store: 'postgres', adapter: 'bullmq-postgres', mostJobs: 3_000 },
  {
    ...usual,
    name: 'platformatic',
    store: 'postgres',
    adapter: 'platformatic',
    mostJobs: 800,
    without: { ...noBulk, 'add-50': deadlock },
  },
  { ...limit, name: 'limit', store: 'postgres', adapter: 'limit-postgres' },
  { ...usual, name: 'BullMQ on Redis', store: 'redis', adapter: 'bullmq-redis', durableAdds: false },
]

/** Why somebody does not take part in a measure; null: it does. */
export function excuse({ without }: Contestant, measure: string): string | null {
  const found = Object.entries(without).find(
    ([beginning]) => measure === beginning || measure.startsWith(`${beginning}-`),
  )
  return found?.[1] ?? null
}

/** Finds who was named on the command line of an agent. Throws where nobody has that name. */
export function contestantNamed(store: string, name: string): Contestant {
  const found = contestants.find((each) => each.store === store && each.name === name)
  if (!found) throw new Error(`nobody is called ${JSON.stringify(name)} on ${store}`)
  return found
}
