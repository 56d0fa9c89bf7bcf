import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { describe, expect, it, onTestFinished } from 'vitest'
import { freshDatabase, postgresSkipReason } from '../support/postgres.ts'
import { repository, TempProject } from '../support/temp-project.ts'

/** One of the services in examples/, as a process of its own. */
class Service {
  readonly #process: ChildProcess
  readonly #lines: AsyncIterator<string>

  constructor(folder: string, env: NodeJS.ProcessEnv) {
    this.#process = spawn(process.execPath, [join(repository, 'examples', folder, 'server.ts')], {
      env: { ...process.env, ...env, PORT: '0' },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    onTestFinished(() => void this.#process.kill('SIGKILL'))
    if (this.#process.stdout === null) throw new Error('the service has no output')
    this.#lines = createInterface(this.#process.stdout)[Symbol.asyncIterator]()
  }

  async nextLine(): Promise<string> {
    return (await this.#lines.next()).value as string
  }

  async url(): Promise<string> {
    const { port } = JSON.parse((await this.nextLine()).replace('listening on ', '')) as { port: number }
    return `http://127.0.0.1:${port}/`
  }

  async stop(): Promise<number | null> {
    const closed = once(this.#process, 'close')
    this.#process.kill('SIGTERM')
    const [code] = (await closed) as [number | null]
    return code
  }
}

async function sqlite(): Promise<Service> {
  const project = new TempProject()
  onTestFinished(() => project[Symbol.dispose]())
  return new Service('http-sqlite', { DATABASE_FILE: join(project.path, 'app.db') })
}

async function postgres(): Promise<Service> {
  const { url, drop } = await freshDatabase()
  onTestFinished(drop)
  return new Service('http-postgres', { DATABASE_URL: url })
}

describe.each([
  ['http-sqlite', sqlite, null],
  ['http-postgres', postgres, postgresSkipReason()],
] as const)('examples/%s', (_, start, missing) => {
  it.skipIf(missing !== null)(
    'commits a user with its job, or neither, runs the job, and ends at SIGTERM',
    async () => {
      const service = await start()
      const url = await service.url()
      const refused = await fetch(url, { method: 'POST', body: '{"name":""}' })
      expect([refused.status, await refused.text()]).toEqual([400, 'Error: a user needs a name'])

      const created = await fetch(url, { method: 'POST', body: '{"name":"Ada"}' })
      const { userId } = (await created.json()) as { userId: number; jobId: number }
      expect(created.status).toBe(201)
      expect(await service.nextLine()).toBe(`greeting user ${userId}`)
      expect(await service.stop()).toBe(0)
    },
  )
})
