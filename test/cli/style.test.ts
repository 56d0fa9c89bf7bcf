import { describe, expect, it } from 'vitest'
import { type ColorChoice, paintFor, wantsColor } from '../../src/cli/style.ts'

describe('colour', () => {
  const cases: readonly (readonly [ColorChoice, boolean, NodeJS.ProcessEnv, boolean])[] = [
    ['auto', true, {}, true],
    ['auto', false, {}, false],
    ['auto', true, { NO_COLOR: '1' }, false],
    ['auto', true, { NO_COLOR: '' }, true],
    ['auto', true, { TERM: 'dumb' }, false],
    ['auto', false, { FORCE_COLOR: '1' }, true],
    ['auto', true, { FORCE_COLOR: '0' }, false],
    ['auto', false, { FORCE_COLOR: '1', NO_COLOR: '1' }, true],
    ['always', false, { NO_COLOR: '1' }, true],
    ['never', true, { FORCE_COLOR: '1' }, false],
  ]
  it.each(cases)('--color=%s, terminal %s, %j: %s', (choice, isTerminal, env, wanted) => {
    expect(wantsColor(choice, { isTerminal, env })).toBe(wanted)
  })

  it('paints where it is wanted and nowhere else', () => {
    expect(paintFor(true)('red', 'error:')).toBe('\u001b[31merror:\u001b[39m')
    expect(paintFor(false)('red', 'error:')).toBe('error:')
  })
})
