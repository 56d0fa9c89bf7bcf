import { release } from 'node:os'
import type { Config } from '../core/config.ts'
import type { Finding } from '../core/findings.ts'
import { version } from '../core/package.ts'
import { type Field, printFields } from './fields.ts'
import type { Output } from './output.ts'

/** Lists what was found, one check a line. */
export async function printFindings(output: Output, findings: readonly Finding[]): Promise<void> {
  await output.list(findings, {
    columns: [
      { title: 'Check', value: ({ check }) => check },
      { title: 'State', value: ({ state }) => state },
      { title: 'Found', value: textOf },
    ],
    record: recordOf,
  })
}

/**
 * Prints what somebody who helps would ask for: versions, settings, and what was found. Nothing in it is secret.
 *
 * config: null where it could not be read.
 */
export async function printReport(output: Output, findings: readonly Finding[], config: Config | null): Promise<void> {
  const settings = config === null ? null : settingsOf(config)
  const facts = {
    khepri: version(),
    node: process.versions.node,
    system: `${process.platform} ${process.arch} ${release()}`,
  }
  if (output.mode === 'json') return output.document({ ...facts, settings, findings: findings.map(recordOf) })
  const fields: readonly Field[] = Object.entries({ ...facts, ...(settings && { settings: JSON.stringify(settings) }) })
  await printFields(output, fields)
  await output.print('')
  await printFindings(output, findings)
}

/** What was found, with the way out of it. */
function textOf(finding: Finding): string {
  return finding.state === 'fault' ? finding.error.message : finding.text
}

function recordOf(finding: Finding): object {
  const { check, state } = finding
  const { fix = null } = state === 'fault' ? finding.error : state === 'warning' ? finding : {}
  return { check, state, found: textOf(finding), fix, code: state === 'fault' ? finding.error.code : null }
}

/** Without what the environment said, and with the database as messages show it. */
function settingsOf({ work: _work, database, jobs, names: _names, ...settings }: Config): object {
  return { database: database.label, ...settings, jobs: `${jobs.length} entries` }
}
