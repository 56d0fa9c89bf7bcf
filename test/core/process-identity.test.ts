import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { hostname } from 'node:os'
import { expect, it } from 'vitest'
import { fateOf, type ProcessIdentity, processIdentity, startTicks } from '../../src/core/process-identity.ts'

const module = new URL('../../src/core/process-identity.ts', import.meta.url).href

async function identityOfAnotherProcess(): Promise<ReturnType<typeof processIdentity>> {
  const code = `import(${JSON.stringify(module)}).then((m) => console.log(JSON.stringify(m.processIdentity())))`
  const child = spawn(process.execPath, ['--input-type=module', '-e', code], { stdio: ['ignore', 'pipe', 'inherit'] })
  const closed = once(child, 'close')
  let text = ''
  for await (const chunk of child.stdout) text += chunk
  await closed
  return JSON.parse(text)
}

it('a process tells its host and its pid, and the same each time', () => {
  expect(processIdentity()).toMatchObject({ host: hostname(), pid: process.pid })
  expect(processIdentity()).toEqual(processIdentity())
})

it.runIf(process.platform === 'linux')(
  'two processes on one machine share the boot and differ in pid and start',
  async () => {
    const mine = processIdentity()
    const other = await identityOfAnotherProcess()
    expect(other).toMatchObject({ host: mine.host, bootId: mine.bootId, pidNamespace: mine.pidNamespace })
    expect(other.pid).not.toBe(mine.pid)
    expect(Number(other.pidStart)).toBeGreaterThan(Number(mine.pidStart))
  },
)

it('a program named ") 1 (" does not shift the start time of its process', () => {
  const fields = ['S', ...Array.from({ length: 18 }, () => '0'), '12345', '99']
  expect(startTicks(`77 () 1 () ${fields.join(' ')}`)).toBe('12345')
})

const linux = it.runIf(process.platform === 'linux')

linux('a living process is alive, by its pid and start time', () => {
  expect(fateOf(processIdentity(), processIdentity())).toBe('alive')
})

linux('a process that has ended is gone, and so is a zombie that nobody has waited for', async () => {
  const self = processIdentity()
  // The shell does not wait for its child, which stays a zombie as long as the shell lives.
  const shell = spawn('sh', ['-c', 'sh -c "exit 0" & echo $!; exec sleep 60'], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [line] = (await once(shell.stdout, 'data')) as [Buffer]
  const trace = { ...self, pid: Number(line.toString()), pidStart: null }
  await expect.poll(() => fateOf(trace, self)).toBe('gone')
  shell.kill('SIGKILL')
  await once(shell, 'exit')
  expect(fateOf({ ...self, pid: shell.pid as number, pidStart: null }, self)).toBe('gone')
})

linux('the same number with another start time belongs to another process: the worker is gone', () => {
  const self = processIdentity()
  expect(fateOf({ ...self, pidStart: '1' }, self)).toBe('gone')
})

it.each<[string, Partial<ProcessIdentity>, string]>([
  ['another boot of this machine', { bootId: 'another' }, 'rebooted'],
  ['another pid namespace, a container beside or after ours', { pidNamespace: 'pid:[1]' }, 'unknown'],
  ['a system that names no boot', { bootId: null }, 'unknown'],
  ['a system that names no namespace', { pidNamespace: null }, 'unknown'],
])('of %s nothing is concluded from a pid that is free here', (_, difference, fate) => {
  const self = { ...processIdentity(), bootId: 'boot', pidNamespace: 'pid:[7]' }
  expect(fateOf({ ...self, pid: 4_000_000, ...difference }, self)).toBe(fate)
})
