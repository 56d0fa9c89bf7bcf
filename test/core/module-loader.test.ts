import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { TempProject } from '../support/temp-project.ts'

/** What loading one file of a project ends with: its exports, or the error. */
async function load(files: Readonly<Record<string, string>>, file = 'main.ts'): Promise<unknown> {
  using project = new TempProject(files)
  const found = await project.runCode(`
    try {
      report({ ...(await loadModule('${join(project.path, file)}', './${file}')) })
    } catch ({ code, message, fix }) {
      report({ code, message: message.replaceAll(cwd, '<root>'), fix })
    }
  `)
  return found
}

const tidy = (message: string, fix: unknown = expect.any(String)): object => ({ code: 'MODULE_BROKEN', message, fix })

describe('TypeScript', () => {
  test.each(['{}', '{"type":"commonjs"}', '{"type":"module"}'])(
    'with imports loads beside package.json %s',
    async (manifest) => {
      expect(
        await load({
          'package.json': manifest,
          'main.ts': 'import { sep } from "node:path"\nconst n: number = 7\nexport default [n, sep]',
        }),
      ).toEqual({ default: [7, '/'] })
    },
  )

  test('finds .ts without extension, behind .js, and as index of a folder', async () => {
    const files = {
      'package.json': '{"type":"commonjs"}',
      'main.ts':
        'import { a } from "./a"\nimport { b } from "./b.js"\nimport { c } from "./c"\nimport { d } from "./d.mjs"\nexport default a + b + c + d',
      'a.ts': 'export const a: number = 1',
      'b.ts': 'export const b: number = 2',
      'c/index.ts': 'export const c: number = 4',
      'd.mts': 'export const d: number = 8',
    }
    expect(await load(files)).toEqual({ default: 15 })
  })

  test('loads .mts, .cts and their CommonJS neighbours', async () => {
    expect(await load({ 'main.mts': 'import x = require("x")' }, 'main.mts')).toMatchObject({ code: 'MODULE_BROKEN' })
    expect(
      await load(
        { 'main.mts': 'import n from "./n.cts"\nexport default n as number', 'n.cts': 'module.exports = 5 as number' },
        'main.mts',
      ),
    ).toEqual({ default: 5 })
    expect(
      await load(
        { 'main.cjs': 'module.exports = { n: require("./n").n }', 'n.ts': 'export const n: number = 6' },
        'main.cjs',
      ),
    ).toMatchObject({ default: { n: 6 } })
  })

  const strippingOnly = expect.stringContaining('Node strips types and nothing more')

  test.each([
    [
      'enum',
      'const a = 1\nenum Colour { Red }\nexport default a',
      'cannot import ./main.ts:2: TypeScript enum is not supported in strip-only mode',
    ],
    [
      'a parameter property',
      '\n\nclass A { constructor(readonly n: number) {} }\nexport default A',
      'cannot import ./main.ts:3: TypeScript parameter property is not supported in strip-only mode',
    ],
    [
      'a decorator',
      'function dec(x: unknown) {}\n\n@dec\nexport default class A {}',
      'cannot import ./main.ts:3: Invalid or unexpected token',
    ],
  ])('%s is refused with file, line and what to do', async (_, text, message) => {
    expect(await load({ 'package.json': '{"type":"commonjs"}', 'main.ts': text })).toEqual(tidy(message, strippingOnly))
  })

  test('a type imported as a value is refused with what to write', async () => {
    expect(
      await load({ 'main.ts': 'import { T } from "./t"\nexport default 1 as T', 't.ts': 'export type T = number' }),
    ).toEqual(
      tidy(
        `cannot import ./main.ts:1: The requested module './t' does not provide an export named 'T'`,
        expect.stringContaining('"import type"'),
      ),
    )
  })

  test('require in a module is refused with what to do', async () => {
    expect(await load({ 'main.ts': 'const x = require("fs")\nexport default x' })).toMatchObject({
      fix: expect.stringContaining('.cts'),
    })
  })
})

describe('khepri', () => {
  test('is found where the project has not installed it', async () => {
    expect(await load({ 'main.ts': 'import { defineJob } from "khepri"\nexport default typeof defineJob' })).toEqual({
      default: 'function',
    })
  })

  test('of the project comes first', async () => {
    const files = {
      'main.ts': 'import { mine } from "khepri"\nexport default mine',
      'node_modules/khepri/package.json': '{"name":"khepri","type":"module","exports":"./index.js"}',
      'node_modules/khepri/index.js': 'export const mine = "local"',
    }
    expect(await load(files)).toEqual({ default: 'local' })
  })
})

describe('errors', () => {
  test('a syntax error names its line, in JavaScript and in TypeScript', async () => {
    expect(await load({ 'main.mjs': 'import "node:fs"\n\nconst y = = 2' }, 'main.mjs')).toEqual(
      tidy("cannot import ./main.mjs:3: Unexpected token '='", 'correct line 3, then: khepri jobs'),
    )
    expect(await load({ 'main.ts': 'const x: number = 1\nconst y = = 2' })).toMatchObject({
      message: expect.stringMatching(/^cannot import \.\/main\.ts:2: /),
    })
    expect(await load({ 'main.cjs': 'const x = 1\nconst y = = 2' }, 'main.cjs')).toMatchObject({
      message: "cannot import ./main.cjs:2: Unexpected token '='",
    })
  })

  test('a syntax error in an imported file names that file', async () => {
    expect(
      await load({ 'main.mjs': 'import "./lib/helper.mjs"', 'lib/helper.mjs': '\nexport const = 1' }, 'main.mjs'),
    ).toMatchObject({
      message: "cannot import ./main.mjs: <root>/lib/helper.mjs:2: Unexpected token '='",
    })
  })

  test('what a module throws is told with its line', async () => {
    expect(await load({ 'main.ts': 'const n: number = 1\n\nthrow new RangeError("no\\nluck")' })).toEqual(
      tidy('cannot import ./main.ts:3: no', 'correct line 3, then: khepri jobs'),
    )
    expect(await load({ 'main.ts': 'throw null' })).toEqual(tidy('cannot import ./main.ts: null'))
  })

  test('a missing package names the command, a path alias the setting', async () => {
    expect(await load({ 'main.ts': 'import "left-behind"' })).toEqual(
      tidy(
        "cannot import ./main.ts: cannot find package 'left-behind'",
        expect.stringMatching(/^npm install left-behind /),
      ),
    )
    expect(await load({ 'main.ts': 'import "@/lib/mail"' })).toEqual(
      tidy(
        "cannot import ./main.ts: cannot find package '@/lib'",
        'paths of tsconfig.json are not read: use "imports" in package.json',
      ),
    )
  })

  test('a missing file is named, be it the module or one that it imports', async () => {
    expect(await load({}, 'nope.ts')).toMatchObject({ message: 'cannot import ./nope.ts: there is no such file' })
    expect(await load({ 'main.ts': 'import "./nope"' })).toMatchObject({
      message: "cannot import ./main.ts: cannot find module '<root>/nope'",
    })
  })

  test('module syntax in a CommonJS package names the way out', async () => {
    expect(
      await load({ 'package.json': '{"type":"commonjs"}', 'main.js': 'import "node:fs"' }, 'main.js'),
    ).toMatchObject({ fix: expect.stringContaining('.mjs') })
  })
})

test('a configuration in each module format is read, whatever the package type', async () => {
  const body = {
    ts: 'const n: number = 7\nexport default { concurrency: n }',
    mjs: 'export default { concurrency: 7 }',
    cjs: 'module.exports = { concurrency: 7 }',
    cts: 'module.exports = { concurrency: 7 as number }',
  }
  for (const [extension, text] of Object.entries(body)) {
    using project = new TempProject({ 'package.json': '{"type":"commonjs"}', [`khepri.config.${extension}`]: text })
    expect(
      await project.runCode('report((await loadConfig({ cwd, flags: {}, env: {} })).concurrency)'),
      extension,
    ).toBe(7)
  }
})

test('a configuration with a syntax error or without a default export is refused with its name', async () => {
  using project = new TempProject({ 'khepri.config.ts': 'export default {\n  queue: = 1\n}' })
  const read = 'report(await caught(loadConfig({ cwd, flags: {}, env: {} })))'
  expect(await project.runCode(read)).toMatchObject({
    code: 'MODULE_BROKEN',
    message: expect.stringMatching(/^cannot import khepri\.config\.ts:2: /),
  })
  project.write('khepri.config.ts', 'export const queue = 1')
  expect(await project.runCode(read)).toMatchObject({
    code: 'CONFIG_INVALID',
    message: 'khepri.config.ts has no default export',
  })
  project.write('khepri.config.ts', 'export default () => 1')
  expect(await project.runCode(read)).toMatchObject({
    code: 'CONFIG_INVALID',
    message: 'khepri.config.ts must hold an object, got a function',
  })
})

test('a module that does not load within 60 s is given up, though other things keep the process busy', async () => {
  using project = new TempProject({ 'main.mjs': 'await new Promise(() => setInterval(() => {}, 1_000))' })
  const found = await project.runCode(`
    const { setTimeout } = globalThis
    globalThis.setTimeout = (run, ms) => setTimeout(run, ms / 100)
    try {
      await loadModule('${join(project.path, 'main.mjs')}', './main.mjs')
    } catch ({ code, message }) {
      report({ code, message })
      process.exit()
    }
  `)
  expect(found).toEqual({
    code: 'MODULE_BROKEN',
    message: 'cannot import ./main.mjs: its top-level await does not end (not within 1m)',
  })
})
