import { expect, test } from 'vitest'
import { Tail } from '../../src/exec/tail.ts'

function tailOf(maxBytes: number, ...chunks: readonly (string | Buffer)[]): Tail {
  const tail = new Tail(maxBytes)
  for (const chunk of chunks) tail.push(Buffer.from(chunk))
  return tail
}

test('keeps the last bytes, whatever the size of the chunks', () => {
  expect(tailOf(4, 'ab', 'cd').text).toBe('abcd')
  expect(tailOf(4, 'ab', 'cd', 'e').text).toBe('bcde')
  expect(tailOf(4, 'abcdefgh').text).toBe('efgh')
  expect(tailOf(4, 'a', 'bcdefgh', 'i').text).toBe('fghi')
  expect(tailOf(4).text).toBe('')
})

test('begins with a whole character where one was cut, and leaves what was never whole as it is', () => {
  expect(tailOf(4, 'é€x').text).toBe('€x')
  expect(tailOf(3, 'é€x').text).toBe('x')
  expect(tailOf(8, Buffer.from([0x80, 0x41])).text).toBe('\ufffdA')
})

test('knows the last line that is not empty', () => {
  expect(tailOf(64, 'one\r\ntwo\n', '\n \n').lastLine).toBe('two')
  expect(tailOf(64, '50%\r100%\r').lastLine).toBe('100%')
  expect(tailOf(64, ' \n').lastLine).toBeNull()
  expect(tailOf(64).lastLine).toBeNull()
})

test('of 100 MB of output holds no more than the tail and one chunk', () => {
  const tail = new Tail(65_536)
  const chunk = Buffer.alloc(65_536, 'x')
  for (let n = 0; n < 1_600; n++) tail.push(chunk)
  expect(tail.text).toHaveLength(65_536)
})
