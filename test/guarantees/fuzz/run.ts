import type { Figures, Form, Print } from '../part.ts'
import { feed, type Meal } from './feeding.ts'
import { feedRows } from './stored-rows.ts'
import type { TargetName } from './target.ts'
import { feedProcess } from './whole-processes.ts'

/** How many inputs each target is fed. */
type Menu = Readonly<Record<Exclude<TargetName, 'planted'> | 'rows' | 'processes', number>>

const menus: Readonly<Record<Form, Menu>> = {
  sample: { 'job-files': 600, envelopes: 500, configs: 250, 'command-lines': 200, rows: 150, processes: 4 },
  short: { 'job-files': 8_000, envelopes: 5_000, configs: 4_000, 'command-lines': 2_000, rows: 1_000, processes: 40 },
  long: {
    'job-files': 80_000,
    envelopes: 60_000,
    configs: 40_000,
    'command-lines': 20_000,
    rows: 10_000,
    processes: 400,
  },
}

/** Each process is fed so many, and each worker so many rows. */
const mealSize = 5_000
const rowsAtOnce = 500

/** Meals under way at once. */
const lanes = 2

/** So many violations are described; whatever is wrong shows in these. */
const mostDescribed = 10

/** The same in every run, so that a run of CI can be repeated. */
export const defaultSeed = 1

/** Feeds khepri what is mostly right and a little wrong. Throws with each input that was not taken or refused as documented. */
export async function run(form: Form, print: Print, seed = defaultSeed): Promise<Figures> {
  const startedAt = performance.now()
  const menu = menus[form]
  const wrong = await serve([...meals(menu, seed), ...rows(menu.rows, seed), ...processes(menu.processes, seed)], print)
  const total = Object.values(menu).reduce((sum, count) => sum + count, 0)
  if (wrong.length > 0)
    throw new Error(`${wrong.length} violations in ${total} inputs:\n${wrong.slice(0, mostDescribed).join('\n')}`)
  return {
    'inputs fed': total,
    'of them job files': menu['job-files'],
    'of them envelopes': menu.envelopes + menu.rows,
    'of them configurations': menu.configs,
    'of them command lines': menu['command-lines'],
    'of them to processes of their own': menu.processes,
    'crashes, hangs and stack traces': 0,
    seconds: Math.round((performance.now() - startedAt) / 1_000),
  }
}

interface Course {
  readonly name: string
  readonly serve: () => Promise<readonly string[]>
}

function meals(menu: Menu, seed: number): readonly Course[] {
  const targets = ['command-lines', 'configs', 'job-files', 'envelopes'] as const
  return targets.flatMap((target) =>
    inParts(menu[target], mealSize).map(({ from, to }) => {
      const meal: Meal = { target, seed, from, to }
      return { name: `${target} ${from} to ${to}`, serve: () => feed(meal) }
    }),
  )
}

function rows(count: number, seed: number): readonly Course[] {
  return inParts(count, rowsAtOnce).map(({ from, to }) => ({
    name: `rows ${from} to ${to}`,
    serve: () => feedRows(seed * 1_000 + from, to - from),
  }))
}

function processes(count: number, seed: number): readonly Course[] {
  return Array.from({ length: count }, (_, input) => ({
    name: `process ${input}`,
    serve: () => feedProcess(seed, input),
  }))
}

function inParts(count: number, size: number): readonly { readonly from: number; readonly to: number }[] {
  return Array.from({ length: Math.ceil(count / size) }, (_, part) => ({
    from: part * size,
    to: Math.min(count, (part + 1) * size),
  }))
}

async function serve(courses: readonly Course[], print: Print): Promise<readonly string[]> {
  const wrong: string[] = []
  const left = courses.values()
  const lane = async (): Promise<void> => {
    for (const course of left) {
      wrong.push(...(await course.serve()))
      if (!course.name.startsWith('process')) print(`${course.name}: ${wrong.length} violations so far`)
    }
  }
  await Promise.all(Array.from({ length: lanes }, lane))
  return wrong
}
