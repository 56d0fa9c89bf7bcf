import fc from 'fast-check'
import { expect, test } from 'vitest'
import { didYouMean, editDistance, suggest } from '../../src/core/suggest.ts'

const commands = ['work', 'dispatch', 'failed', 'retry', 'flush', 'jobs', 'migrate']

test.each([
  ['wrok', 'work'],
  ['dispach', 'dispatch'],
  ['faield', 'failed'],
  ['JOBS', 'jobs'],
  ['migrat', 'migrate'],
  ['send', undefined],
  ['', undefined],
  ['w'.repeat(10_000), undefined],
])('%s suggests %s', (word, found) => {
  expect(suggest(word, commands)).toBe(found)
})

test('an exchange of neighbours counts one', () => {
  expect(editDistance('wrok', 'work')).toBe(1)
  expect(editDistance('abcd', 'badc')).toBe(2)
})

test('the distance is 0 for equal words only, the same both ways, and never above the longer length', () => {
  const word = fc.string({ maxLength: 12 })
  fc.assert(
    fc.property(word, word, (a, b) => {
      const distance = editDistance(a, b)
      expect(distance === 0).toBe(a === b)
      expect(editDistance(b, a)).toBe(distance)
      expect(distance).toBeLessThanOrEqual(Math.max(a.length, b.length))
    }),
  )
})

test('didYouMean is a sentence to put behind another, or nothing', () => {
  expect(`unknown job "send-welcom"${didYouMean('send-welcom', ['send-welcome'])}`).toBe(
    'unknown job "send-welcom". Did you mean "send-welcome"?',
  )
  expect(didYouMean('zzzzzz', commands)).toBe('')
})
