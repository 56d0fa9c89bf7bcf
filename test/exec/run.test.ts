import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, watch, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { describe, expect, test } from 'vitest'
import { endGroupsOf } from '../../src/exec/recorded-groups.ts'
import { Programs } from './support.ts'

/** Why a language is left out; null where it is there. */
const missing = (command: string): boolean => spawnSync(command, ['--version'], { stdio: 'ignore' }).status !== 0

describe('the exit code of a program', () => {
  const inShell = (language: string) => (programs: Programs, code: number) =>
    programs.program(
      'program',
      `#!/usr/bin/env ${language}\necho one >&2\necho "in/7.png: no such file" >&2\nexit ${code}\n`,
    )
  const inPython = (programs: Programs, code: number): unknown =>
    programs.program(
      'program',
      `#!/usr/bin/env python3\nimport sys\nprint("in/7.png: no such file", file=sys.stderr)\nsys.exit(${code})\n`,
    )
  const inC = (programs: Programs, code: number): unknown => {
    const source = programs.write(
      'program.c',
      `#include <stdio.h>\nint main(void) { fputs("in/7.png: no such file\\n", stderr); return ${code}; }\n`,
    )
    return execFileSync('cc', ['-o', programs.in('program'), source])
  }

  describe.each([
    { language: 'bash', write: inShell('bash') },
    { language: 'python3', write: inPython },
    { language: 'cc', write: inC },
  ])('written in $language', ({ language, write }) => {
    test.skipIf(missing(language)).each([
      { code: 0, kind: 'done', message: null },
      { code: 1, kind: 'failed', message: 'exit 1: in/7.png: no such file' },
      { code: 65, kind: 'final', message: 'exit 65: in/7.png: no such file' },
      { code: 75, kind: 'failed', message: 'exit 75: in/7.png: no such file' },
      { code: 78, kind: 'final', message: 'exit 78: in/7.png: no such file' },
      { code: 127, kind: 'failed', message: 'exit 127: in/7.png: no such file' },
      { code: 255, kind: 'failed', message: 'exit 255: in/7.png: no such file' },
    ])('$code means $kind', async ({ code, kind, message }) => {
      using programs = new Programs()
      write(programs, code)
      expect(await programs.run('./program')).toMatchObject({ kind, message })
    })
  })

  test('is a plain "exit 3" where stderr is empty, whatever stdout says', async () => {
    using programs = new Programs()
    expect(await programs.script('echo fine; exit 3')).toEqual({
      kind: 'failed',
      type: 'CommandFailed',
      message: 'exit 3',
      delay: null,
      output: 'fine\n',
    })
  })

  test('is none after a signal, which fails the attempt by its name', async () => {
    using programs = new Programs()
    expect(await programs.script('echo gone >&2; kill -SEGV $$')).toMatchObject({
      kind: 'failed',
      message: 'killed by SIGSEGV: gone',
    })
  })
})

describe('what a program is given', () => {
  test('is the payload byte for byte on stdin, also of 1 MiB', async () => {
    using programs = new Programs()
    for (const payloadText of ['{"a":1.0, "b":"\\u00e9é",\n"big":12345678901234567890}', `"${'x'.repeat(1 << 20)}"`]) {
      await programs.script('cat > got', { payloadText })
      expect(readFileSync(programs.in('got'), 'utf8') === payloadText).toBe(true)
    }
  })

  test('can be read as /dev/stdin, and need not be read at all', async () => {
    using programs = new Programs()
    expect(await programs.script('cat /dev/stdin', { payloadText: '{"n":1}' })).toMatchObject({ output: '{"n":1}' })
    expect(await programs.script('exec <&-; exit 0', { payloadText: `"${'x'.repeat(1 << 20)}"` })).toMatchObject({
      kind: 'done',
    })
  })

  test('is what the job is, in 8 variables, beside those of the worker and of its own', async () => {
    using programs = new Programs()
    programs.program('show', '#!/bin/sh\nenv | grep -E "^(KHEPRI_JOB_|OWN=|HOME=)" | sort\n')
    const { output } = await programs.run('./show', { env: { OWN: 'a b' } })
    expect(output?.replace(/RESULT=.*/, 'RESULT=')).toBe(
      [
        `HOME=${process.env.HOME}`,
        'KHEPRI_JOB_ATTEMPT=2',
        'KHEPRI_JOB_FENCE=3',
        'KHEPRI_JOB_ID=7',
        'KHEPRI_JOB_NAME=resize',
        'KHEPRI_JOB_QUEUE=high',
        'KHEPRI_JOB_RESULT=',
        'KHEPRI_JOB_SCHEDULED_FOR=2026-01-05T10:00:00.000Z',
        'KHEPRI_JOB_TRIES=5',
        'OWN=a b',
        '',
      ].join('\n'),
    )
  })

  test('the slot of a schedule, and not when the job became ready', async () => {
    using programs = new Programs()
    const scheduledFor = Date.UTC(2026, 0, 5, 2, 30)
    await programs.script('echo "$KHEPRI_JOB_SCHEDULED_FOR" > slot', { scheduledFor })
    expect(readFileSync(programs.in('slot'), 'utf8')).toBe('2026-01-05T02:30:00.000Z\n')
  })

  test('are its arguments as they were written: no shell has seen them', async () => {
    using programs = new Programs()
    programs.program('show', '#!/bin/sh\nprintf "<%s>" "$0" "$@"\n')
    const args = ['$HOME', '`id`', '; exit 9', '*', '', "it's", '-x']
    const { output } = await programs.run('./show', { args })
    expect(output).toBe([programs.in('show'), ...args].map((word) => `<${word}>`).join(''))
  })

  test('is the folder of the configuration to work in, or its cwd', async () => {
    using programs = new Programs({ 'data/x': '' })
    programs.program('where', '#!/bin/sh\npwd\n')
    expect(await programs.run('./where')).toMatchObject({ output: `${programs.path}\n` })
    expect(await programs.run('./where', { cwd: './data' })).toMatchObject({ output: `${programs.in('data')}\n` })
  })

  test('is a command on the PATH where its name has no slash', async () => {
    using programs = new Programs()
    programs.program('bin/own-command', '#!/bin/sh\necho found\n')
    expect(await programs.run('own-command', { env: { PATH: `${programs.in('bin')}:/usr/bin:/bin` } })).toMatchObject({
      output: 'found\n',
    })
    expect(await programs.run('own-command')).toMatchObject({
      kind: 'failed',
      message: 'cannot start own-command: it is not on the PATH',
    })
  })

  test('is nothing else: our own descriptor is closed, and no signal is ignored', async () => {
    using programs = new Programs()
    const { output } = await programs.script('[ -e /proc/$$/fd/3 ] && echo open; grep SigIgn /proc/self/status')
    expect(output).toBe('SigIgn:\t0000000000000000\n')
  })
})

describe('a command that cannot be started is a failed attempt that names it', () => {
  test.each([
    { what: 'is not there', write: () => {}, why: 'there is no such file' },
    { what: 'is a folder', write: (programs: Programs) => mkdirSync(programs.in('x')), why: 'it is not a file' },
    {
      what: 'has no execute bit',
      write: (programs: Programs) => programs.write('x', '#!/bin/sh\n'),
      why: 'it is not executable',
    },
  ])('where it $what', async ({ write, why }) => {
    using programs = new Programs()
    write(programs)
    expect(await programs.run('./x')).toMatchObject({
      kind: 'failed',
      type: 'CommandNotStarted',
      message: `cannot start ./x: ${why}`,
    })
  })

  test('where its interpreter is missing', async () => {
    using programs = new Programs()
    programs.program('x', '#!/no/such/interpreter\n')
    expect(await programs.run('./x')).toMatchObject({
      kind: 'failed',
      type: 'CommandNotStarted',
      message: expect.stringMatching(/^cannot start \.\/x: .*not found|required file/),
    })
  })

  test('where its arguments are more than the system takes', async () => {
    using programs = new Programs()
    programs.program('x', '#!/bin/sh\n')
    expect(await programs.run('./x', { args: ['x'.repeat(4 << 20)] })).toMatchObject({
      kind: 'failed',
      message: 'cannot start ./x: spawn E2BIG',
    })
  })

  test('where its cwd is missing', async () => {
    using programs = new Programs()
    programs.program('x', '#!/bin/sh\n')
    expect(await programs.run('./x', { cwd: './gone' })).toMatchObject({
      message: 'cannot start ./x: its cwd ./gone is not a folder',
    })
  })
})

describe('the result file', () => {
  test('is empty, ours alone, in a folder that is ours alone, and gone after the run', async () => {
    using programs = new Programs()
    const { output } = await programs.script(
      'stat -c "%a %s" "$KHEPRI_JOB_RESULT"; stat -c %a "$(dirname "$KHEPRI_JOB_RESULT")"; echo "$KHEPRI_JOB_RESULT"',
    )
    const [file, folder, path = ''] = output?.split('\n') ?? []
    expect([file, folder]).toEqual(['600 0', '700'])
    expect(existsSync(path)).toBe(false)
    expect(existsSync(dirname(path))).toBe(true)
  })

  test.each([
    { says: '{"release":"10m"}', exit: 0, kind: 'released', delay: '10m', message: 'released' },
    { says: '{"release":"10m"}', exit: 1, kind: 'released', delay: '10m', message: 'released' },
    { says: '{"release":0}', exit: 0, kind: 'released', delay: 0, message: 'released' },
    { says: '{"fail":"no such customer"}', exit: 0, kind: 'final', delay: null, message: 'no such customer' },
    { says: '{"fail":"no such customer"}', exit: 75, kind: 'final', delay: null, message: 'no such customer' },
  ])('with $says outranks exit $exit', async ({ says, exit, kind, delay, message }) => {
    using programs = new Programs()
    expect(await programs.script(`echo '${says}' >"$KHEPRI_JOB_RESULT"; exit ${exit}`)).toMatchObject({
      ...{ kind, delay, message },
    })
  })

  test.each([
    { what: 'no JSON', write: `echo '{"release":' >"$KHEPRI_JOB_RESULT"` },
    { what: 'two lines', write: `printf '{"release":"1m"}\\n{"fail":"x"}\\n' >"$KHEPRI_JOB_RESULT"` },
    { what: 'an unknown key', write: `echo '{"retry":"1m"}' >"$KHEPRI_JOB_RESULT"` },
    { what: 'two keys', write: `echo '{"release":"1m","fail":"x"}' >"$KHEPRI_JOB_RESULT"` },
    { what: 'a reason that is no text', write: `echo '{"fail":1}' >"$KHEPRI_JOB_RESULT"` },
    { what: 'a delay that is none', write: `echo '{"release":"soon"}' >"$KHEPRI_JOB_RESULT"` },
    { what: 'more than 64 KiB', write: `head -c 65537 /dev/zero >"$KHEPRI_JOB_RESULT"` },
    { what: 'a link', write: `echo '{"fail":"x"}' >f; ln -sf "$PWD/f" "$KHEPRI_JOB_RESULT"` },
    { what: 'a named pipe', write: `rm "$KHEPRI_JOB_RESULT"; mkfifo "$KHEPRI_JOB_RESULT"` },
  ])('with $what is a failed attempt that names the file, though the exit code is 0', async ({ write }) => {
    using programs = new Programs()
    expect(await programs.script(write)).toMatchObject({
      kind: 'failed',
      message: expect.stringMatching(/^the result file \/\S+\.result cannot be read: \S/),
    })
  })

  test('that was removed says nothing', async () => {
    using programs = new Programs()
    expect(await programs.script('rm "$KHEPRI_JOB_RESULT"')).toMatchObject({ kind: 'done' })
  })

  test('is not read where a signal ended the program', async () => {
    using programs = new Programs()
    expect(await programs.script(`echo '{"fail":"x"}' >"$KHEPRI_JOB_RESULT"; kill -KILL $$`)).toMatchObject({
      kind: 'failed',
      message: 'killed by SIGKILL',
    })
  })
})

describe('output', () => {
  test('keeps the last 64 KiB of both streams', async () => {
    using programs = new Programs()
    const { output } = await programs.script('head -c 200000 /dev/zero | tr "\\0" x; echo end >&2')
    expect(output).toHaveLength(65_536)
    expect(output?.endsWith('xend\n')).toBe(true)
  })

  test('that a process outside of the group holds open keeps nobody waiting', async () => {
    using programs = new Programs()
    const { kind, output } = await programs.script('setsid sleep 60 & echo $! >pid; echo done')
    process.kill(Number(readFileSync(programs.in('pid'), 'utf8')), 'SIGKILL')
    expect({ kind, output }).toEqual({ kind: 'done', output: 'done\n' })
  })
})

/** Whether a process is there and not merely uncollected. */
function isAlive(pid: number): boolean {
  try {
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return false
  }
}

/** Resolves as soon as a file has a line in it. */
function lineIn(path: string): Promise<string> {
  return new Promise((resolve) => {
    const watcher = watch(dirname(path), () => look())
    const look = (): void => {
      const text = existsSync(path) ? readFileSync(path, 'utf8') : ''
      if (!text.endsWith('\n')) return
      watcher.close()
      resolve(text.trim())
    }
    look()
  })
}

const pids = (text: string): readonly number[] => text.split(/\s+/).map(Number)

describe('the end of a group', () => {
  test('comes with SIGTERM when the signal aborts, for grandchildren too', async () => {
    using programs = new Programs()
    const stopping = new AbortController()
    const running = programs.script('sleep 60 & echo $$ $! >started; wait', { signal: stopping.signal })
    const started = pids(await lineIn(programs.in('started')))
    stopping.abort()
    expect(await running).toMatchObject({ kind: 'failed', message: 'killed by SIGTERM' })
    expect(started.map(isAlive)).toEqual([false, false])
  })

  test('comes with SIGKILL where script and grandchild ignore SIGTERM', async () => {
    using programs = new Programs()
    const stopping = new AbortController()
    const running = programs.script(
      'trap "" TERM; sh -c "while :; do sleep 60; done" & echo $$ $! >started; while :; do sleep 60; done',
      { signal: stopping.signal },
    )
    const started = pids(await lineIn(programs.in('started')))
    stopping.abort()
    expect(await running).toMatchObject({ kind: 'failed', message: 'killed by SIGKILL' })
    expect(started.map(isAlive)).toEqual([false, false])
  })

  test('lets a script that hears SIGTERM say how it ended, and its result file is not read', async () => {
    using programs = new Programs()
    const stopping = new AbortController()
    const running = programs.script(
      `trap 'echo cleaned; echo "{\\"fail\\":\\"x\\"}" >"$KHEPRI_JOB_RESULT"; exit 0' TERM; echo >started; sleep 60 & wait`,
      { signal: stopping.signal },
    )
    await lineIn(programs.in('started'))
    stopping.abort()
    expect(await running).toMatchObject({ kind: 'done', output: 'cleaned\n' })
  })

  test('comes to what a script has left running when it ended', async () => {
    using programs = new Programs()
    expect(await programs.script('sleep 60 & echo $! >left')).toMatchObject({ kind: 'done' })
    expect(isAlive(Number(readFileSync(programs.in('left'), 'utf8')))).toBe(false)
  })

  test('leaves the end of a pipeline the time to write its last line', async () => {
    using programs = new Programs()
    programs.program('script.sh', '#!/bin/sh\n(sleep 0.05; echo late) &\nexit 0\n')
    expect(await programs.run('./script.sh')).toMatchObject({ kind: 'done', output: 'late\n' })
  })

  test('reaches a group that was stopped', async () => {
    using programs = new Programs()
    const stopping = new AbortController()
    const running = programs.script('echo $$ >started; kill -STOP $$; sleep 60', { signal: stopping.signal })
    await lineIn(programs.in('started'))
    stopping.abort()
    expect(await running).toMatchObject({ kind: 'failed', message: 'killed by SIGTERM' })
  })
})

/** The guards that this process has started. */
function guards(): readonly number[] {
  const isOurs = (pid: string): boolean => {
    try {
      const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
      return command.includes('khepri-guard') && command.some((word) => word.includes(`/${process.pid}-`))
    } catch {
      return false
    }
  }
  return readdirSync('/proc').filter(isOurs).map(Number).filter(isAlive)
}

describe('the guard', () => {
  test('is one for all runs of a process, and is replaced when somebody kills it while something runs', async () => {
    using programs = new Programs()
    const stopping = new AbortController()
    const running = programs.script('echo >started; exec sleep 60', { signal: stopping.signal })
    await lineIn(programs.in('started'))
    await programs.run('./script.sh', {}, { signal: AbortSignal.abort() })
    const first = guards()
    expect(first).toHaveLength(1)
    process.kill(first[0] ?? 0, 'SIGKILL')
    // Nobody is told when it has been replaced; a process that is just becoming another program has no name for a moment.
    let found = guards()
    while (found.length === 0 || found[0] === first[0]) {
      await new Promise((resolve) => setTimeout(resolve, 5))
      found = guards()
    }
    expect(found).toHaveLength(1)
    stopping.abort()
    await running
  })
})

describe('the groups of a dead worker', () => {
  test('are ended at once by whoever asks, and those of others are not', async () => {
    using programs = new Programs()
    programs.program('hold', '#!/bin/sh\ntrap "" TERM\necho $$ >"$1"\nexec sleep 60\n')
    const stopping = new AbortController()
    const dead = programs.run('./hold', { args: ['dead'] }, { worker: 41 })
    const living = programs.run('./hold', { args: ['living'] }, { worker: 42, signal: stopping.signal })
    const [deadPid = 0, livingPid = 0] = [
      ...pids(await lineIn(programs.in('dead'))),
      ...pids(await lineIn(programs.in('living'))),
    ]
    await endGroupsOf([41, 43])
    expect([isAlive(deadPid), isAlive(livingPid)]).toEqual([false, true])
    expect(await dead).toMatchObject({ message: 'killed by SIGKILL' })
    await endGroupsOf([42])
    expect(await living).toMatchObject({ message: 'killed by SIGKILL' })
  })

  test('are left alone where their number belongs to somebody else by now', async () => {
    using programs = new Programs()
    const stopping = new AbortController()
    const running = programs.script('echo "$KHEPRI_JOB_RESULT" >started; exec sleep 60', {
      worker: 44,
      signal: stopping.signal,
    })
    const record = (await lineIn(programs.in('started'))).replace(/result$/, 'group')
    const [group] = readFileSync(record, 'utf8').split(' ')
    expect(statSync(record).mode & 0o777).toBe(0o600)
    writeFileSync(record, `${group} 1\n`)
    await endGroupsOf([44])
    expect(isAlive(Number(group))).toBe(true)
    stopping.abort()
    await running
  })
})
