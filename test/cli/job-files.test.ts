import { execFileSync } from 'node:child_process'
import { chmodSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type JsonItem, maxDocumentBytes, readJobFile } from '../../src/cli/job-files.ts'
import { parseJobObject } from '../../src/cli/job-object.ts'
import { TempProject } from '../support/temp-project.ts'

const maxPayloadBytes = 1024 * 1024

async function* nothing(): AsyncGenerator<Uint8Array> {}

async function collect(items: AsyncIterable<JsonItem>): Promise<JsonItem[]> {
  const all: JsonItem[] = []
  for await (const item of items) all.push(item)
  return all
}

/** Reads bytes as stdin would bring them, in pieces of so many bytes. */
function readStdin(content: string | Uint8Array, pieceBytes = 7): Promise<JsonItem[]> {
  async function* pieces(): AsyncGenerator<Uint8Array> {
    const bytes = Buffer.from(content)
    for (let at = 0; at < bytes.length; at += pieceBytes) yield bytes.subarray(at, at + pieceBytes)
  }
  return collect(readJobFile('-', { stdin: pieces(), maxPayloadBytes }))
}

const readFile = (path: string): Promise<JsonItem[]> =>
  collect(readJobFile(path, { stdin: nothing(), maxPayloadBytes }))

const places = (items: readonly JsonItem[]): unknown[] => items.map(({ text, line, column }) => [text, line, column])

describe('readJobFile', () => {
  test('one object over several lines is one item, byte for byte', async () => {
    const text = '{\n  "job": "a",\n  "payload": {"n": 12345678901234567890.10, "__proto__": "\\ud800"}\n}'
    expect(await readStdin(`\n ${text}\n\n`)).toEqual([{ text, source: 'stdin', line: 2, column: 2, error: null }])
  })

  test('an array gives its elements with their places', async () => {
    expect(places(await readStdin('[{"job":"a"},\n  {"job":"b"}, 7,\n\n[8]]'))).toEqual([
      ['{"job":"a"}', 1, 2],
      ['{"job":"b"}', 2, 3],
      ['7', 2, 16],
      ['[8]', 4, 1],
    ])
    expect(await readStdin('[]')).toEqual([])
  })

  test('a whole value followed by more lines is NDJSON; empty lines count and are passed over', async () => {
    expect(places(await readStdin('{"job":"a"}\r\n\r\n  [1,2]\t\r\n"x"'))).toEqual([
      ['{"job":"a"}', 1, 1],
      ['[1,2]', 3, 3],
      ['"x"', 4, 1],
    ])
  })

  test('one line alone is one value, or the elements of an array', async () => {
    expect(places(await readStdin('{"job":"a"}'))).toEqual([['{"job":"a"}', 1, 1]])
    expect(places(await readStdin('[1,2]\n\n \n'))).toEqual([
      ['1', 1, 2],
      ['2', 1, 4],
    ])
    expect(places(await readStdin('7'))).toEqual([['7', 1, 1]])
  })

  test('a byte order mark and CRLF are passed over, in each form', async () => {
    expect(places(await readStdin('\ufeff{"job":"a"}\r\n{"job":"b"}\r\n'))).toEqual([
      ['{"job":"a"}', 1, 1],
      ['{"job":"b"}', 2, 1],
    ])
    expect(places(await readStdin('\ufeff{\r\n"job":"a"}\r\n'))).toEqual([['{\r\n"job":"a"}', 1, 1]])
  })

  test.each(['', '\n', '  \r\n\t', '\ufeff', '\ufeff\n'])('the empty input %j is refused', async (text) => {
    await expect(readStdin(text)).rejects.toMatchObject({
      code: 'JSON_INVALID',
      message: 'stdin is empty, expected JSON',
    })
  })

  test('a broken document shows line, column and caret as in the manual', async () => {
    using project = new TempProject()
    const file = project.write('broken.json', '{\n  "job": "a",\n  "payload": 7 "queue": "high"\n}\n')
    await expect(readFile(file)).rejects.toMatchObject({
      code: 'JSON_INVALID',
      message: `${file}:3:16: expected ',' or '}' after a value\n  3 |   "payload": 7 "queue": "high"\n    |                ^`,
    })
  })

  test('trailing garbage and a second value on a line are refused at their place', async () => {
    await expect(readStdin('{"job":"a"} x')).rejects.toMatchObject({
      message: expect.stringContaining('stdin:1:13: expected the end after a value'),
    })
    await expect(readStdin('{"a":1} {"a":2}\n{"a":3}')).rejects.toMatchObject({
      message: expect.stringContaining('stdin:1:9: expected the end after a value'),
    })
    await expect(readStdin('{\n"a":1}\n{"a":2}')).rejects.toMatchObject({
      message: expect.stringContaining('stdin:3:1: expected the end after a value'),
    })
  })

  test('a bad line of NDJSON comes as an item with its error, and the next lines come too', async () => {
    const items = await readStdin('{"n":1}\n{"n":2} {"n":3}\n{"n" 4}\n{"n":5}\n')
    expect(items.map(({ text, error }) => [text, error?.code, error?.message.split('\n')[0]])).toEqual([
      ['{"n":1}', undefined, undefined],
      ['{"n":2} {"n":3}', 'JSON_INVALID', 'stdin:2:9: expected the end after a value'],
      ['{"n" 4}', 'JSON_INVALID', "stdin:3:6: expected ':' after a key"],
      ['{"n":5}', undefined, undefined],
    ])
    expect(items[2]).toMatchObject({ line: 3, column: 6 })
  })

  test('invalid UTF-8 is told with line and byte, in each form', async () => {
    const bytes = Buffer.concat([
      Buffer.from('{"n":"ä\ufffd"}\n{"n":"'),
      Buffer.from([0xc3, 0x28]),
      Buffer.from('"}\n{"n":3}'),
    ])
    const items = await readStdin(bytes)
    expect(items.map(({ error }) => error?.message)).toEqual([undefined, 'stdin:2: not UTF-8 at byte 20', undefined])
    await expect(readStdin(Buffer.from([0x22, 0xff, 0x22]))).rejects.toMatchObject({
      code: 'JSON_INVALID',
      message: 'stdin:1: not UTF-8 at byte 1',
    })
    await expect(readStdin(Buffer.from([0xff]))).rejects.toMatchObject({ message: 'stdin:1: not UTF-8 at byte 0' })
    await expect(readStdin(Buffer.from([0x7b, 0x0a, 0x22, 0xed, 0xa0, 0x80, 0x22]))).rejects.toMatchObject({
      message: 'stdin:2: not UTF-8 at byte 3',
    })
  })

  test('UTF-16 is recognised', async () => {
    await expect(readStdin(Buffer.from('\ufeff{"job":"a"}', 'utf16le'))).rejects.toMatchObject({
      message: 'stdin:1: not UTF-8 at byte 0, it looks like UTF-16',
    })
  })

  test('however the bytes are cut into pieces, the items are the same', async () => {
    const value = fc.jsonValue({ maxDepth: 2 })
    await fc.assert(
      fc.asyncProperty(
        fc.array(value, { minLength: 2, maxLength: 6 }),
        fc.constantFrom('\n', '\r\n', '\n\n'),
        fc.integer({ min: 1, max: 40 }),
        async (values, end, pieceBytes) => {
          const texts = values.map((each) => JSON.stringify(each))
          expect((await readStdin(texts.join(end), pieceBytes)).map(({ text }) => text)).toEqual(texts)
        },
      ),
    )
  })
})

describe('sizes', () => {
  test('a line beyond maxPayload and 64 KiB is refused by itself, at the limit it is taken', async () => {
    const limit = maxPayloadBytes + 64 * 1024
    const fits = `"${'x'.repeat(limit - 2)}"`
    const items = await readStdin(`1\n${fits}\n"x${fits.slice(1)}\n2`, 256 * 1024)
    expect(items.map(({ error }) => error?.message)).toEqual([
      undefined,
      undefined,
      'stdin:3: this job has more than 1,114,112 bytes',
      undefined,
    ])
    expect(items[1]?.text).toBe(fits)
    expect(items[2]?.text.length).toBeLessThanOrEqual(1024)
  })

  test('50 MB as one value are refused', async () => {
    using project = new TempProject()
    const file = project.write('big.json', `{"job":"a","payload":"${'x'.repeat(50_000_000)}"}`)
    expect((await readFile(file))[0]?.error).toMatchObject({
      code: 'PAYLOAD_REFUSED',
      message: `${file}:1: this job has more than 1,114,112 bytes`,
    })
  })

  test('an object over many lines that is too large is refused, and one that is broken before that shows where', async () => {
    const filler = `"x": "${'x'.repeat(1000)}",\n`.repeat(2_000)
    await expect(readStdin(`{\n${filler}"y":1}`, 256 * 1024)).rejects.toMatchObject({
      code: 'PAYLOAD_REFUSED',
      message: 'stdin:1: this job has more than 1,114,112 bytes',
    })
    await expect(readStdin(`{"n" 1}\n${'{"n":1}\n'.repeat(200_000)}`, 256 * 1024)).rejects.toMatchObject({
      code: 'JSON_INVALID',
      message: expect.stringContaining("stdin:1:6: expected ':' after a key"),
    })
  })

  test('an element of an array that is too large is refused by itself', async () => {
    const items = await readStdin(`[1,\n"${'ä'.repeat(700_000)}",2]`, 256 * 1024)
    expect(items.map(({ error }) => error?.message)).toEqual([
      undefined,
      'stdin:2: this job has more than 1,114,112 bytes',
      undefined,
    ])
  })

  test('a document of more than 64 MiB is refused without being held', async () => {
    async function* endless(): AsyncGenerator<Uint8Array> {
      const piece = Buffer.from(`"${'x'.repeat(1024 * 1024 - 4)}",\n`)
      yield Buffer.from('[\n')
      for (;;) yield piece
    }
    const reading = collect(readJobFile('-', { stdin: endless(), maxPayloadBytes }))
    await expect(reading).rejects.toMatchObject({
      code: 'PAYLOAD_REFUSED',
      message: 'stdin is one JSON text of more than 64 MiB',
    })
    expect(maxDocumentBytes).toBe(64 * 1024 * 1024)
  })

  test('NDJSON of 200 MB streams: less than 40 MB are held at a time', async () => {
    async function* lines(): AsyncGenerator<Uint8Array> {
      const piece = Buffer.from(`{"job":"a","payload":"${'x'.repeat(1000)}"}\n`.repeat(1000))
      for (let index = 0; index < 200; index++) yield piece
    }
    let most = 0
    let count = 0
    globalThis.gc?.()
    const before = process.memoryUsage().arrayBuffers
    for await (const { error } of readJobFile('-', { stdin: lines(), maxPayloadBytes })) {
      expect(error === null && ++count > 0).toBe(true)
      if (count % 1000 === 0) most = Math.max(most, process.memoryUsage().arrayBuffers - before)
    }
    expect(count).toBe(200_000)
    expect(most).toBeLessThan(40_000_000)
  })

  test('200,000 levels are read without a stack overflow, and refused as a job', async () => {
    const deep = '['.repeat(200_000) + ']'.repeat(200_000)
    const [item] = await readStdin(`{"job":"a","payload":${deep}}`, 256 * 1024)
    expect(item?.error).toBeNull()
    expect(() => parseJobObject(item as JsonItem)).toThrow(
      expect.objectContaining({
        code: 'PAYLOAD_REFUSED',
        message: 'stdin:1: "payload" is nested more than 1,000 levels deep',
      }),
    )
    const [backoff] = await readStdin(`{"job":"a","backoff":${deep}}`, 256 * 1024)
    expect(() => parseJobObject(backoff as JsonItem)).toThrow(expect.objectContaining({ code: 'PAYLOAD_REFUSED' }))
  })
})

describe('files that cannot be read', () => {
  test('a missing file, a directory and a part of a path that is no folder are named', async () => {
    using project = new TempProject({ 'a.json': '{}' })
    await expect(readFile(join(project.path, 'nope.json'))).rejects.toMatchObject({
      code: 'INPUT_MISSING',
      message: `cannot read ${project.path}/nope.json: no such file`,
    })
    await expect(readFile(project.path)).rejects.toMatchObject({
      code: 'INPUT_MISSING',
      message: `${project.path} is a directory, not a file`,
    })
    await expect(readFile(join(project.path, 'a.json/b.json'))).rejects.toMatchObject({
      message: expect.stringContaining('a part of its path is not a folder'),
    })
  })

  test('a FIFO is refused at once, although nobody writes to it', async () => {
    using project = new TempProject()
    const fifo = join(project.path, 'pipe')
    execFileSync('sh', ['-c', 'mkfifo "$0"', fifo])
    await expect(readFile(fifo)).rejects.toMatchObject({
      code: 'INPUT_MISSING',
      message: `${fifo} is not a regular file`,
      fix: `to read from a pipe or device: khepri dispatch - < ${fifo}`,
    })
  })

  test('a file without the right to read it is named', async () => {
    using project = new TempProject()
    const file = project.write('secret.json', '{}')
    chmodSync(file, 0o000)
    chmodSync(project.path, 0o755)
    await asOrdinaryUser(async () => {
      await expect(readFile(file)).rejects.toMatchObject({
        code: 'INPUT_MISSING',
        message: `cannot read ${file}: permission denied`,
      })
    })
  })
})

/** Root may read everything, so rights are tested as somebody else. */
async function asOrdinaryUser(run: () => Promise<void>): Promise<void> {
  const isRoot = process.geteuid?.() === 0
  if (isRoot) process.seteuid?.(65_534)
  try {
    await run()
  } finally {
    if (isRoot) process.seteuid?.(0)
  }
}
