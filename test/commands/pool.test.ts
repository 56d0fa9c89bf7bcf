import { describe, expect, it } from 'vitest'
import { migratedProject } from '../support/khepri-project.ts'

/** Each job says how many of its queue ran when it began. */
const nap = `let running = 0
export default async (_, { log }) => {
  log(String(running++))
  await new Promise((resolve) => setTimeout(resolve, 100))
  running--
}`
const jobs = {
  'jobs/mail.mjs': nap.replace('running = 0', 'running = 0 // mail'),
  'jobs/note.mjs': nap,
}

async function project(config: unknown) {
  const made = await migratedProject({ ...jobs, 'khepri.config.json': JSON.stringify(config) })
  const values = Array(8).fill('{}').join('\n')
  for (const [job, queue] of [
    ['mail', 'mail'],
    ['note', 'default'],
  ] as const)
    await made.khepri(['dispatch', '-', '--job', job, '--queue', queue], { stdin: values })
  return made
}

/** The most jobs of a name that were seen beside another one of it, itself included. */
function most(stdout: string, job: string): number {
  const seen = [...stdout.matchAll(new RegExp(` LOG \\d+ ${job} .* text=(\\d+)`, 'g'))]
  return Math.max(...seen.map(([, beside]) => Number(beside) + 1))
}

describe('khepri work', () => {
  it.each([
    ['with a limit in the config', { queues: { mail: { concurrency: 3 }, default: {} } }, [], 4, 1],
    ['with --pool', {}, ['--pool', 'mail:3,default:2'], 5, 2],
    ['with --concurrency over the config', { queues: { mail: { concurrency: 3 }, default: {} } }, ['-c', '7'], 7, 4],
  ])('%s runs no more jobs of a queue at once', async (_, config, flags, slots, notes) => {
    using made = await project(config)
    const { code, stdout, stderr } = await made.khepri(['work', '--stop-when-empty', ...flags])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toMatch(new RegExp(`queues mail,default  concurrency ${slots}  `))
    expect(stdout).toMatch(/stopped: 16 done/)
    expect(most(stdout, 'mail')).toBe(3)
    expect(most(stdout, 'note')).toBeGreaterThanOrEqual(notes)
  })

  it.each([
    ['mail:x', '--pool mail must be a whole number of at least 1, got "x"'],
    ['mail:0', '--pool mail must be a whole number of at least 1, got "0"'],
    ['mail', '--pool must be a list such as mail:32,default:4, got "mail"'],
    ['mail:1,,a:2', '--pool must be a list such as mail:32,default:4, got "mail:1,,a:2"'],
    ['mail:2,mail:3', '--pool names the queue "mail" twice'],
  ])('refuses --pool %s', async (value, message) => {
    using made = await migratedProject(jobs)
    const { code, stderr } = await made.khepri(['work', '--pool', value])
    expect({ code, stderr }).toEqual({ code: 2, stderr: `error: ${message}\n` })
  })
})
