import { hostname } from 'node:os'
import { KhepriCommand } from '../cli/base-command.ts'
import { exits } from '../cli/exit-codes.ts'
import { nameFlag, textFlag } from '../cli/flags.ts'
import { isWell, readHealth, unhealthy } from '../cli/health.ts'
import { count } from '../cli/words.ts'
import { stateOf } from '../cli/worker-list.ts'

/** `khepri health`: a probe for supervisors and containers. */
export default class HealthCommand extends KhepriCommand {
  static readonly id = 'health'
  static readonly summary = 'Tell whether a worker of this host is well: exit 0, or 1'
  static readonly description =
    'Asks the database for workers of this host that beat. With --file it reads what `khepri work --health-file` keeps instead: no database is asked, and a worker in whose event loop nothing moves is not well.'
  static readonly examples = ['khepri health', 'khepri health --name=web1', 'khepri health --file=/run/khepri.health']
  static readonly args = {}
  static readonly flags = {
    name: nameFlag({ exclusive: ['file'], summary: 'the worker of this name, on whatever host' }),
    file: textFlag({ helpValue: 'FILE', summary: 'the file that khepri work --health-file keeps' }),
  }

  protected async run(): Promise<void> {
    const { flags } = await this.parse(HealthCommand)
    // Before the probe: a configuration that cannot be read says nothing about the health of a worker.
    const app = flags.file === undefined ? await this.app() : null
    try {
      const well = app === null ? this.#ofFile(flags.file as string) : await this.#ofStore(flags.name)
      if (this.output.mode === 'json') await this.output.document({ healthy: true, found: well })
      else this.say(well)
    } catch (error) {
      this.report(error, exits.failed)
    }
  }

  #ofFile(file: string): string {
    const health = readHealth(file)
    const { worker, state, validUntil } = health
    if (isWell(health, Date.now())) return `worker ${worker} is ${state}`
    const isOld = Date.now() > validUntil
    throw unhealthy(
      isOld
        ? `worker ${worker} has kept ${file} no more since ${this.output.time(validUntil)}`
        : `worker ${worker} is ${state}`,
    )
  }

  async #ofStore(name: string | undefined): Promise<string> {
    const admin = await (await this.app()).admin()
    const here = hostname()
    const asked = (await admin.workers()).filter((each) =>
      name === undefined ? each.host === here : each.name === name,
    )
    const living = asked.filter((each) => ['working', 'draining'].includes(stateOf(each, Date.now())))
    const whose = name === undefined ? `on ${here}` : `of the name ${JSON.stringify(name)}`
    if (living.length === 0)
      throw unhealthy(
        `no live worker ${whose}${asked.length === 0 ? '' : `; ${count(asked.length, 'worker')} gone or silent`}`,
      )
    return `${count(living.length, 'live worker')} ${whose}`
  }
}
