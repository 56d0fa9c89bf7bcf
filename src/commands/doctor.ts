import { KhepriCommand } from '../cli/base-command.ts'
import { examine } from '../cli/doctor.ts'
import { printFindings, printReport } from '../cli/doctor-report.ts'
import { exits } from '../cli/exit-codes.ts'
import { Flags } from '../cli/flags.ts'
import type { Finding } from '../core/findings.ts'

/** `khepri doctor`: checks everything that a worker needs, and says how each fault is mended. */
export default class Doctor extends KhepriCommand {
  static readonly id = 'doctor'
  static readonly summary = 'Check Node, configuration, jobs and database, each fault with its fix'
  static readonly description =
    'Changes nothing. Every job is loaded, the database is reached, and tried whether it can be written. Exit 1 where something is at fault; what is only worth a thought is a warning.'
  static readonly examples = ['khepri doctor', 'khepri doctor --json', 'khepri doctor --report > report.txt']
  static readonly args = {}
  static readonly flags = {
    report: Flags.boolean({ summary: 'versions, settings and findings, to be passed on; without passwords' }),
  }

  protected async run(): Promise<void> {
    const { flags } = await this.parse(Doctor)
    const findings = await examine(() => this.app(), { env: process.env, pid: process.pid })
    if (flags.report) await printReport(this.output, findings, await this.#config())
    else await printFindings(this.output, findings)
    for (const finding of findings) this.#tell(finding)
  }

  /** A module that leaves an error behind has not loaded well. */
  protected override heardStray(): void {
    this.exitWith(exits.failed)
  }

  async #config() {
    return this.app().then(
      ({ config }) => config,
      () => null,
    )
  }

  /** In JSON a warning and its fix stand in the document. */
  #tell(finding: Finding): void {
    if (finding.state === 'fault') this.report(finding.error, exits.failed)
    else if (finding.state === 'warning' && this.output.mode !== 'json')
      this.say(`warning: ${finding.text}\n  fix: ${finding.fix}`, 'yellow')
  }
}
