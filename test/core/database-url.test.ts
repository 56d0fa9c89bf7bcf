import { expect, test } from 'vitest'
import { parseDatabase } from '../../src/core/database-url.ts'

const parse = (text: unknown): unknown => parseDatabase(text, 'database', '/srv/app')

test.each([
  ['sqlite:./khepri.db', '/srv/app/khepri.db'],
  ['sqlite:khepri.db', '/srv/app/khepri.db'],
  ['sqlite:../x/k.db', '/srv/x/k.db'],
  ['sqlite:/var/k.db', '/var/k.db'],
  ['sqlite:///var/k.db', '/var/k.db'],
  ['SQLITE:a b#c.db', '/srv/app/a b#c.db'],
])('%s is the file %s, shown as it was written', (text, path) => {
  expect(parse(text)).toEqual({ kind: 'sqlite', path, label: text })
})

test.each([
  ['postgres://app:s3cret@db1/app', 'postgres://app:***@db1:5432/app'],
  ['postgresql://app@db1:6432/app', 'postgresql://app@db1:6432/app'],
  ['postgres://app:p%23ss@[::1]/app?password=s3cret&sslmode=require', 'postgres://app:***@[::1]:5432/app'],
  ['postgres:///app', 'postgres://localhost:5432/app'],
  ['postgres://app:a@b@db1/app', 'postgres://app:***@db1:5432/app'],
])('%s is shown as %s', (url, label) => {
  expect(parse(url)).toEqual({ kind: 'postgres', url, label })
})

test('the parameter "schema", which the server does not know, is not passed on', () => {
  expect(() => parse('postgres://app@db1/app?schema=foo')).toThrow(
    expect.objectContaining({ code: 'CONFIG_INVALID', fix: expect.stringContaining('the setting schema') }),
  )
})

test('memory: is the memory store', () => {
  expect(parse('memory:')).toEqual({ kind: 'memory', label: 'memory:' })
})

test.each([
  ['', 'database must be sqlite:./khepri.db'],
  [7, 'database must be sqlite:./khepri.db'],
  ['./khepri.db', 'database must begin with a scheme'],
  ['redis://:s3cret@host', 'database: no store for "redis:"'],
  ['sqlite:', 'database names no file'],
  ['sqlite::memory:', 'database: an SQLite database in memory is not offered'],
  ['sqlite:./a.db?mode=ro', 'takes a path and no parameters, got "sqlite:./a.db?mode=ro"'],
  ['sqlite:~/a.db', '"~" is known to shells only'],
  ['postgres://app:s3cret/x@db1/app', 'database is not a URL that can be read'],
  ['postgres://app:12#s3cret@db1/app', 'database is not a URL that can be read'],
  ['postgres://app:12?s3cret@db1/app', 'database is not a URL that can be read'],
])('refuses %j and repeats no password', (text, message) => {
  expect(() => parse(text)).toThrow(
    expect.objectContaining({ code: 'CONFIG_INVALID', message: expect.stringContaining(message) }),
  )
  expect(() => parse(text)).toThrow(expect.objectContaining({ message: expect.not.stringContaining('s3cret') }))
})
