import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  caret,
  depthOf,
  elements,
  findDuplicateKey,
  findFault,
  isDeeperThan,
  members,
  positionOf,
  requireJson,
} from '../../src/core/json-text.ts'

const parses = (text: string): boolean => {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

describe('findFault', () => {
  test('takes every text that JSON.stringify writes, with and without indents', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.constantFrom(0, 1, '\t'), (value, indent) => {
        expect(findFault(JSON.stringify(value, null, indent))).toBeNull()
      }),
    )
  })

  test('agrees with JSON.parse about 5,000 texts made of pieces of JSON', () => {
    const piece = fc.constantFrom(
      '{',
      '}',
      '[',
      ']',
      ',',
      ':',
      '"',
      '"a"',
      '"\\u00e4"',
      '\\',
      '1',
      '-0',
      '01',
      '1.',
      '1e5',
      '.5',
      'true',
      'null',
      'nul',
      ' ',
      '\n',
      '\u0001',
      '\ufeff',
      '\u00a0',
      "'",
    )
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 9 }), (pieces) => {
        const text = pieces.join('')
        expect(findFault(text) === null, text).toBe(parses(text))
      }),
      { numRuns: 5_000 },
    )
  })

  test('agrees with JSON.parse about valid texts of which one character was changed', () => {
    fc.assert(
      fc.property(
        fc.jsonValue(),
        fc.nat(),
        fc.constantFrom('', ',', '"', '}', ']', '\\', '0', '\n'),
        (value, where, what) => {
          const text = JSON.stringify(value, null, 1)
          const at = where % text.length
          const changed = text.slice(0, at) + what + text.slice(at + 1)
          expect(findFault(changed) === null, changed).toBe(parses(changed))
        },
      ),
      { numRuns: 2_000 },
    )
  })

  test.each([
    ['{\n  "job": "a",\n  "payload": 7 "queue": "high"\n}', 31, "expected ',' or '}' after a value"],
    ['[1 2]', 3, "expected ',' or ']' after a value"],
    ['{"a":1}{"b":2}', 7, 'expected the end after a value'],
    ['{"a":1} x', 8, 'expected the end after a value'],
    ['{"a" 1}', 5, "expected ':' after a key"],
    ['{"a":}', 5, "expected a value after ':'"],
    ['{a:1}', 1, "expected a key in double quotes or '}'"],
    ['{"a":1,}', 7, "expected a key in double quotes after ','"],
    ['[1,]', 3, "expected a value after ','"],
    ['[01]', 1, 'this is not a number as JSON writes them'],
    ['[+1]', 1, 'this is not a number as JSON writes them'],
    ['[NaN]', 1, "expected a value or ']', got the word NaN"],
    ["{'a':1}", 1, "expected a key in double quotes or '}'"],
    ['["a\nb"]', 3, 'a control character inside a string must be written as an escape such as \\n'],
    ['["a\\x"]', 3, 'this escape is not one JSON knows'],
    ['["\\ud83"]', 2, 'this escape is not one JSON knows'],
    ['["abc', 1, 'this string is never closed'],
    ['{"a":1\n\n', 6, "expected ',' or '}' after a value, but the text ends"],
    ['', 0, 'expected a JSON value, but the text ends'],
    ['\ufeff{}', 0, 'expected a JSON value'],
  ])('says where and what is wrong with %j', (text, offset, message) => {
    expect(findFault(text)).toEqual({ offset, message })
  })

  test('reads 200,000 levels without running out of stack, closed or not', () => {
    const open = '['.repeat(200_000)
    expect(findFault(open + ']'.repeat(200_000))).toBeNull()
    expect(findFault(open)).toEqual({ offset: 200_000, message: "expected a value or ']', but the text ends" })
    expect(findFault(`${'{"a":'.repeat(200_000)}1${'}'.repeat(200_000)}`)).toBeNull()
  })
})

describe('members and elements', () => {
  test('give the exact text of each value, big numbers and doubled keys included', () => {
    const text = ' {"n": 12345678901234567890.10 , "o":{"x":"}"},\n"s":"a\\"b","__proto__":[1,[2]],"n":\ttrue} '
    expect(members(text).map(({ key, start, end }) => [key, text.slice(start, end)])).toEqual([
      ['n', '12345678901234567890.10'],
      ['o', '{"x":"}"}'],
      ['s', '"a\\"b"'],
      ['__proto__', '[1,[2]]'],
      ['n', 'true'],
    ])
  })

  test('read keys with escapes as the characters they stand for and say where the keys stand', () => {
    expect(members('{ "\\u006aob":1}')).toEqual([{ key: 'job', keyStart: 2, start: 13, end: 14 }])
  })

  test('are none for other values and for empty ones', () => {
    for (const text of ['7', '"{}"', '[]', '{}', ' { } ']) expect(members(text)).toEqual([])
    for (const text of ['7', '{}', '[]', ' [ ] ']) expect(elements(text)).toEqual([])
  })

  test('give back any object and any array that JSON.stringify wrote', () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.string(), fc.jsonValue()),
        fc.array(fc.jsonValue()),
        fc.constantFrom(0, 2),
        (object, array, indent) => {
          const text = JSON.stringify(object, null, indent)
          expect(
            Object.fromEntries(members(text).map(({ key, start, end }) => [key, JSON.parse(text.slice(start, end))])),
          ).toEqual(JSON.parse(text))
          const list = JSON.stringify(array, null, indent)
          expect(elements(list).map(({ start, end }) => JSON.parse(list.slice(start, end)))).toEqual(JSON.parse(list))
        },
      ),
    )
  })
})

describe('depthOf', () => {
  test.each([
    ['7', 0],
    ['[]', 1],
    ['{"a":[{"b":1}],"c":[]}', 3],
    ['"[[[["', 0],
    ['["\\"[["]', 1],
  ])('of %s is %i', (text, depth) => {
    expect(depthOf(text)).toBe(depth)
  })

  test('counts 200,000 levels', () => {
    expect(depthOf('['.repeat(200_000) + ']'.repeat(200_000))).toBe(200_000)
  })

  test('1,000 levels are not deeper than 1,000 and 1,001 are', () => {
    const nested = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels)
    expect(isDeeperThan(nested(1_000), 1_000)).toBe(false)
    expect(isDeeperThan(nested(1_001), 1_000)).toBe(true)
  })
})

describe('findDuplicateKey', () => {
  test('finds a doubled key at any depth, however it is written', () => {
    const text = '{"a":{"x":1,"y":{}},"b":[{"k":"k"},{"k":1,"\\u006b":2}]}'
    expect(findDuplicateKey(text)).toEqual({ key: 'k', offset: text.indexOf('"\\u006b"') })
  })

  test('does not take equal keys of different objects, or values, for doubled', () => {
    expect(findDuplicateKey('{"a":{"a":"a"},"b":["b","b",{"a":1}],"constructor":1}')).toBeNull()
  })
})

describe('caret', () => {
  test('shows the line and points under the place, as in the manual', () => {
    const text = '{\n  "job": "a",\n  "payload": 7 "queue": "high"\n}'
    expect(() => requireJson(text, 'broken.json')).toThrow(
      [
        "broken.json:3:16: expected ',' or '}' after a value",
        '  3 |   "payload": 7 "queue": "high"',
        '    |                ^',
      ].join('\n'),
    )
  })

  test('cuts a line of 50,000 characters around the caret and stays under its place', () => {
    const text = `[${'1,'.repeat(25_000)} x${',1'.repeat(100)}]`
    const [head = '', line = '', mark = ''] = caret({
      source: 'a.json',
      text,
      offset: text.indexOf('x'),
      message: 'no',
    }).split('\n')
    expect(head).toBe('a.json:1:50003: no')
    expect(line.length).toBeLessThan(120)
    expect(line[mark.indexOf('^')]).toBe('x')
  })

  test('lets no control character through, keeps the caret in place behind a tab, and counts from an origin', () => {
    const shown = caret({
      source: 'evil\u001b[31m',
      text: '\t"\u001b[2J\u202e" x\r\n',
      offset: 9,
      message: 'no',
      origin: { line: 40, column: 1 },
    })
    expect(shown).toBe(['evil:40:10: no', '  40 |  " [2J " x', '     |          ^'].join('\n'))
  })

  test('positionOf counts lines from 1 and columns from 1, behind CRLF too', () => {
    expect(positionOf('a\r\nbc\n', 0)).toEqual({ line: 1, column: 1 })
    expect(positionOf('a\r\nbc\n', 4)).toEqual({ line: 2, column: 2 })
    expect(positionOf('a\r\nbc\n', 6)).toEqual({ line: 3, column: 1 })
  })
})
