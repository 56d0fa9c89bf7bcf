import { KhepriCommand } from '../cli/base-command.ts'
import { Flags } from '../cli/flags.ts'
import { goneOf } from '../cli/restarting.ts'
import { count, listed } from '../cli/words.ts'
import type { Admin, WorkerRow } from '../core/store/admin.ts'

/** `khepri restart`: asks the workers of this moment to make room for new ones. */
export default class Restart extends KhepriCommand {
  static readonly id = 'restart'
  static readonly summary = 'Ask every worker to drain and exit 0, so that its supervisor starts new code'
  static readonly description =
    'A mark in the store, which workers on every machine see within a second. They take nothing new, let what runs come to its end, and exit 0. Workers that start later are not asked. --wait waits until they are gone.'
  static readonly examples = ['khepri restart', 'khepri migrate && khepri restart --wait']
  static readonly args = {}
  static readonly flags = { wait: Flags.boolean({ summary: 'wait until they have stopped' }) }

  protected async run(): Promise<void> {
    const { flags } = await this.parse(Restart)
    const admin = await (await this.app()).admin()
    const ids = await admin.restart()
    const names = new Map((await admin.workers()).map(({ id, name }) => [id, name]))
    const nameOf = (id: number): string => names.get(id) ?? String(id)
    await this.#tell(ids.map(nameOf))
    const stopped = flags.wait ? await this.#wait(admin, ids, nameOf) : null
    if (this.output.mode === 'json')
      await this.output.document({ asked: ids.map(nameOf), ...(stopped !== null && { stopped }) })
  }

  async #tell(names: readonly string[]): Promise<void> {
    if (this.output.mode === 'json') return
    if (names.length === 0) return this.say('No workers. Start one: khepri work')
    await this.print(`Asked ${count(names.length, 'worker')} to restart: ${listed(names)}`)
  }

  async #wait(admin: Admin, ids: readonly number[], nameOf: (id: number) => string): Promise<readonly object[]> {
    const stopped: object[] = []
    for await (const { id, fate } of goneOf(admin, ids, (left) => this.#sayWhoIsLeft(left))) {
      stopped.push({ worker: nameOf(id), as: fate })
      const end = fate === 'stopped' ? 'has stopped' : 'is dead: it has not beaten for its whole lease'
      if (this.output.mode !== 'json') await this.print(`${nameOf(id)} ${end}`)
    }
    return stopped
  }

  #sayWhoIsLeft(left: readonly WorkerRow[]): void {
    if (this.output.mode === 'json') return
    const each = left.map(({ name, running }) => `${name} (${count(running, 'job')} running)`)
    this.say(`Still waiting for ${listed(each)}`)
  }
}
