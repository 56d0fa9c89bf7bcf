import { defaults } from '../core/defaults.ts'

/** What the printed units are about. */
export interface UnitFacts {
  /** The program and its arguments, one a word. */
  readonly command: readonly string[]
  /** The folder that relative paths start from. */
  readonly folder: string
  /** Who runs it; null: systemd's user manager, where there is no choice. */
  readonly user: string | null
  /** The longest time that a job may take, as far as jobs say. */
  readonly longestMs: number
  /** It ends by itself when there is nothing to do, and a timer starts it again. */
  readonly isBounded: boolean
}

/** Silence of the reserve loop after which systemd starts the worker anew: longer than any outage of a moment. */
const watchdog = '5min'

/** A stop waits at least so long; a drain that takes longer asks for more. */
const leastStopMs = 90_000

/** The unit of a worker. isTemplate: one unit a queue, which the instance names: khepri@mail. */
export function serviceUnit(facts: UnitFacts, isTemplate: boolean): string {
  const { user, isBounded } = facts
  const stopMs = Math.max(leastStopMs, facts.longestMs + defaults.graceMs + 30_000)
  return sections([
    [
      'Unit',
      [
        `Description=khepri worker${isTemplate ? ' for the queue %i' : ''}`,
        ...(user === null ? [] : ['Wants=network-online.target', 'After=network-online.target']),
      ],
    ],
    [
      'Service',
      [
        'Type=notify',
        '# systemd-notify, which speaks for the worker, is its child.',
        'NotifyAccess=all',
        ...(user === null ? [] : [`User=${user}`]),
        `WorkingDirectory=${escaped(facts.folder)}`,
        `ExecStart=${commandLine(facts, isTemplate)}`,
        '# Once to the worker, which lets jobs end; what is left after that is killed with it.',
        'KillMode=mixed',
        isBounded ? 'Restart=on-failure' : 'Restart=always',
        'RestartSec=1s',
        '# Wrong usage, rights and configuration do not get better by a restart.',
        'RestartPreventExitStatus=2 77 78',
        '# The longest timeout of a job, and some; while jobs run the worker asks for more.',
        `TimeoutStopSec=${Math.ceil(stopMs / 1_000)}s`,
        '# Fed for as long as the loop that reserves jobs turns.',
        `WatchdogSec=${watchdog}`,
        ...hardening(user === null),
      ],
    ],
    ...(isBounded ? [] : [['Install', [`WantedBy=${user === null ? 'default' : 'multi-user'}.target`]] as const]),
  ])
}

/** The timer that starts khepri.service again a minute after it has ended. */
export function timerUnit(): string {
  return sections([
    ['Unit', ['Description=khepri jobs, every minute']],
    ['Timer', ['OnActiveSec=1s', 'OnUnitInactiveSec=1min', 'AccuracySec=1s']],
    ['Install', ['WantedBy=timers.target']],
  ])
}

/** What a worker never needs. /tmp stays shared: it is where workers find what a dead one has left running. */
function hardening(isUser: boolean): readonly string[] {
  const anywhere = ['NoNewPrivileges=true', 'LockPersonality=true', 'RestrictRealtime=true', 'RestrictSUIDSGID=true']
  if (isUser) return anywhere
  return [
    ...anywhere,
    'ProtectSystem=full',
    'ProtectControlGroups=true',
    'ProtectKernelLogs=true',
    'ProtectKernelModules=true',
    'ProtectKernelTunables=true',
  ]
}

function commandLine({ command }: UnitFacts, isTemplate: boolean): string {
  return [...command.map(quoted), ...(isTemplate ? ['--queue=%i'] : [])].join(' ')
}

/** A word of a command line as systemd reads it: specifiers and variables are doubled, the rest is quoted where it must be. */
function quoted(word: string): string {
  const text = escaped(word).replaceAll('$', '$$$$')
  return /^[\w.,:/@%+=$-]+$/.test(text) ? text : `"${text.replaceAll(/[\\"]/g, '\\$&')}"`
}

const escaped = (text: string): string => text.replaceAll('%', '%%')

function sections(parts: readonly (readonly [string, readonly string[]])[]): string {
  return parts.map(([name, lines]) => `[${name}]\n${lines.join('\n')}`).join('\n\n')
}
