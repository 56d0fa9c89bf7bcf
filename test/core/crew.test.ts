import { expect, it } from 'vitest'
import type { AttemptSetting } from '../../src/core/attempt.ts'
import { Crew } from '../../src/core/crew.ts'
import { EventBus } from '../../src/core/events.ts'
import { exec } from '../../src/core/executable.ts'
import { Registry } from '../../src/core/registry.ts'
import type { Reservation } from '../../src/core/store/store.ts'

it('executables, and jobs that may not kill any worker, are never held unstarted', async () => {
  const entries = Object.entries({ script: exec('./x.sh'), plain: () => {} })
  const registry = await Registry.open({ jobs: [{ kind: 'map', entries }], root: '/', file: null })
  const setting = { registry, events: new EventBus() } as unknown as AttemptSetting
  const crew = new Crew(setting, { judge: () => {}, freed: () => {}, hookEnded: () => {} })
  const mayWait = (job: string, envelope = '{"maxCrashes":3}'): boolean =>
    crew.mayWait({ job, envelope } as Reservation)
  expect([mayWait('plain'), mayWait('unknown'), mayWait('script')]).toEqual([true, true, false])
  expect(mayWait('plain', '{"maxCrashes":0}')).toBe(false)
})
