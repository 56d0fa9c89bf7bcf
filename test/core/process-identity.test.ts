import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { hostname } from 'node:os'
import { expect, it } from 'vitest'
import { processIdentity, startTicks } from '../../src/core/process-identity.ts'

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
