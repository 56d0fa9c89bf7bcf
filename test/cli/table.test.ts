import { describe, expect, it } from 'vitest'
import { alignedLine, terminalLayout, widthOf, widthsOf } from '../../src/cli/table.ts'

describe('columns', () => {
  it('are as wide as their widest cell', () => {
    expect(
      widthsOf([
        ['ID', 'Queue'],
        ['1', 'a-long-queue'],
        ['20000', 'b'],
      ]),
    ).toEqual([5, 12])
  })

  it('count wide characters twice and surrogate pairs once', () => {
    expect(widthOf('漢字')).toBe(4)
    expect(widthOf('😀')).toBe(2)
    expect(widthOf('é')).toBe(1)
  })

  it('in a pipe let a later, wider cell push the others instead of cutting it', () => {
    expect(alignedLine(['1', 'x'.repeat(6), 'end'], [3, 4, 3])).toBe('1    xxxxxx  end')
  })

  it('leave no blanks at the end of a line', () => {
    expect(alignedLine(['1', ''], [3, 9])).toBe('1')
  })
})

describe('a terminal of 30 columns', () => {
  it('gives the last column what the others leave', async () => {
    const layout = await terminalLayout([2, 5, 100], 30)
    expect(layout([['1', 'mail', 'y'.repeat(100)]])).toEqual([`1   mail   ${'y'.repeat(18)}…`])
  })

  it('bounds the other columns, so that a long name leaves room for the rest', async () => {
    const [line] = (await terminalLayout([255, 8], 30))([['q'.repeat(255), 'it broke']])
    expect(line).toBe(`${'q'.repeat(9)}…  it broke`)
  })

  it('narrows the widest of many columns until every line fits', async () => {
    const cells = ['web1-4121', 'host.example.org', '4121', 'default', '-']
    const [line] = (await terminalLayout(widthsOf([cells]), 30))([cells])
    expect(line).toBe('web1…  host.…  4121  defau…  -')
    expect(line?.length).toBeLessThanOrEqual(30)
  })
})
