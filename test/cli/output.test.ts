import { Writable } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { Output, type OutputOptions } from '../../src/cli/output.ts'
import { OutputClosed, Stdout } from '../../src/cli/stdout.ts'
import { KhepriError } from '../../src/core/errors.ts'

const plainOptions: OutputOptions = {
  json: false,
  plain: false,
  color: 'auto',
  quiet: false,
  verbose: false,
  calling: { program: 'khepri', flags: '' },
  timezone: undefined,
}

/** A stream that keeps what is written, and looks like a terminal if it is told to. */
class Sink extends Writable {
  text = ''
  /** The size of each write that reached it. */
  readonly writes: number[] = []
  readonly isSlow: boolean = false

  constructor(facts: { readonly isTTY?: boolean; readonly columns?: number; readonly isSlow?: boolean } = {}) {
    super({ decodeStrings: false })
    Object.assign(this, facts)
  }

  override _write(chunk: string, _encoding: string, done: (error?: Error) => void): void {
    this.text += chunk
    this.writes.push(chunk.length)
    if (this.isSlow) setImmediate(done)
    else done()
  }
}

function outputTo(stdout: Writable, options: Partial<OutputOptions> = {}) {
  const stderr = new Sink()
  const output = new Output({ ...plainOptions, ...options }, new Stdout(stdout as never), stderr as never)
  return { output, stderr }
}

interface Row {
  readonly id: number
  readonly error: string
}

const listing = {
  columns: [
    { title: 'ID', value: ({ id }: Row) => String(id) },
    { title: 'Error', value: ({ error }: Row) => error },
  ],
  record: (row: Row) => row,
}

const evil = '\u001b[2J\u001b]0;owned\u0007\u009b31mred\r\nnext\tend'

describe('a listing', () => {
  it('has columns and a header in a pipe, and nothing is cut', async () => {
    const sink = new Sink()
    const long = 'x'.repeat(500)
    expect(
      await outputTo(sink).output.list(
        [
          { id: 1, error: long },
          { id: 20_000, error: 'short' },
        ],
        listing,
      ),
    ).toBe(2)
    expect(sink.text).toBe(`ID     Error\n1      ${long}\n20000  short\n`)
  })

  it('fits the width of a terminal, its header dimmed, its last column cut with a mark', async () => {
    const sink = new Sink({ isTTY: true, columns: 20 })
    await outputTo(sink, { color: 'always' }).output.list([{ id: 1, error: 'a text that is much too long' }], listing)
    expect(sink.text).toBe('\u001b[2mID  Error\u001b[22m\n1   a text that is …\n')
  })

  it('keeps wide characters within the width of a terminal', async () => {
    const sink = new Sink({ isTTY: true, columns: 20 })
    await outputTo(sink, { color: 'never' }).output.list([{ id: 1, error: '漢字漢字漢字漢字漢字漢字' }], listing)
    const line = sink.text.split('\n')[1] ?? ''
    expect([...line].reduce((sum, each) => sum + (each > '\u2e80' ? 2 : 1), 0)).toBeLessThanOrEqual(20)
    expect(line).toContain('漢字')
  })

  it('is TAB-separated without a header with --plain, and a TAB in a value is none', async () => {
    const sink = new Sink()
    await outputTo(sink, { plain: true }).output.list([{ id: 1, error: 'a\tb\nc' }], listing)
    expect(sink.text).toBe('1\ta b c\n')
  })

  it('is one array with --json, whatever is in it, and an empty one for nothing', async () => {
    const [full, empty] = [new Sink(), new Sink()]
    const rows = [
      { id: 1, error: evil },
      { id: 2, error: '"' },
    ]
    await outputTo(full, { json: true }).output.list(rows, listing)
    await outputTo(empty, { json: true }).output.list([], listing)
    expect(JSON.parse(full.text)).toEqual(rows)
    expect(JSON.parse(empty.text)).toEqual([])
  })

  it('prints nothing for no rows, not even a header', async () => {
    const sink = new Sink()
    expect(await outputTo(sink).output.list([], listing)).toBe(0)
    expect(sink.text).toBe('')
  })

  it('of 50,000 rows is written in pieces as they are read, so that memory stays flat', async () => {
    const sink = new Sink({ isSlow: true })
    let unwritten = 0
    async function* rows(): AsyncGenerator<Row> {
      for (let id = 1; id <= 50_000; id++) {
        unwritten = Math.max(unwritten, id * 'ID     it broke'.length - sink.text.length)
        yield { id, error: 'it broke' }
      }
    }
    await outputTo(sink).output.list(rows(), listing)
    expect(sink.text.split('\n')).toHaveLength(50_002)
    expect(Math.max(...sink.writes)).toBeLessThan(70_000)
    expect(unwritten).toBeLessThan(200_000)
  })
})

describe('foreign texts', () => {
  const modes: readonly Partial<OutputOptions>[] = [{}, { plain: true }, { json: true }]
  it.each(modes)('bring no escape code through, %j', async (options) => {
    const sink = new Sink({ isTTY: true, columns: 200 })
    const { output, stderr } = outputTo(sink, { color: 'never', ...options })
    await output.list([{ id: 1, error: evil }], listing)
    if (!options.json) await output.print(evil)
    output.say(evil)
    output.report(new KhepriError('BUG', evil, { fix: evil }), 70)
    expect(sink.text + stderr.text).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/)
  })
})

describe('prose', () => {
  it('goes to stderr, and nowhere with --quiet', () => {
    const [loud, quiet] = [outputTo(new Sink()), outputTo(new Sink(), { quiet: true })]
    loud.output.say('Nothing to do')
    quiet.output.say('Nothing to do')
    expect(loud.stderr.text).toBe('Nothing to do\n')
    expect(quiet.stderr.text).toBe('')
  })
})

describe('an error', () => {
  it('is a sentence and a fix', () => {
    const { output, stderr } = outputTo(new Sink(), { quiet: true })
    output.report(
      new KhepriError('SCHEMA_MISSING', 'the schema of sqlite:./khepri.db is missing', { fix: 'khepri migrate' }),
      78,
    )
    expect(stderr.text).toBe('error: the schema of sqlite:./khepri.db is missing\n  fix: khepri migrate\n')
  })

  it('is one line of JSON with --json', () => {
    const { output, stderr } = outputTo(new Sink(), { json: true })
    output.report(new KhepriError('NOT_FOUND', 'no failed job\n99'), 3)
    expect(stderr.text).toBe('{"error":{"code":"NOT_FOUND","message":"no failed job\\n99","fix":null,"exit":3}}\n')
  })

  it('has a stack only with --verbose', () => {
    const error = new KhepriError('BUG', 'it broke', { cause: new TypeError('the cause') })
    const [brief, verbose] = [outputTo(new Sink()), outputTo(new Sink(), { verbose: true })]
    brief.output.report(error, 70)
    verbose.output.report(error, 70)
    expect(brief.stderr.text).toBe('error: it broke\n')
    expect(verbose.stderr.text).toMatch(/ at .*output\.test\.ts.*caused by: TypeError: the cause.*khepri \d/s)
  })
})

describe('stdout', () => {
  const failing = (code: string): Writable =>
    new Writable({ write: (_chunk, _encoding, done) => done(Object.assign(new Error('write failed'), { code })) })

  it('whose reader has gone ends a listing', async () => {
    const { output } = outputTo(failing('EPIPE'))
    await expect(output.print('text')).rejects.toThrow(OutputClosed)
    await expect(output.print('more')).rejects.toThrow(OutputClosed)
  })

  it('on a full disk is an IO error', async () => {
    const { output } = outputTo(failing('ENOSPC'))
    await expect(output.print('text')).rejects.toThrow(
      expect.objectContaining({ code: 'IO', message: 'writing to stdout failed: no space left on device' }),
    )
  })

  it('tells listeners once that it is gone, and late ones at once', async () => {
    const stdout = new Stdout(failing('EPIPE') as never)
    const heard: string[] = []
    stdout.onFault(() => heard.push('early'))
    await stdout.write('text').catch(() => heard.push('write'))
    stdout.onFault(() => heard.push('late'))
    expect(heard).toEqual(['early', 'write', 'late'])
    await stdout.flush()
  })

  it('is kept free of what others print once it is diverted', async () => {
    const [sink, other] = [new Sink(), new Sink()]
    const stdout = new Stdout(sink as never)
    stdout.divert(other as never)
    sink.write('from a module\n')
    await stdout.write('a result\n')
    expect(sink.text).toBe('a result\n')
    expect(other.text).toBe('from a module\n')
  })
})
