import { KhepriError } from './errors.ts'

/** As `engines` in package.json and `bin/run.cjs` say it. */
const needed = [22, 18] as const

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)

// Imported for this alone, first of all: what an old Node lacks would otherwise show up as a riddle somewhere below.
if (major < needed[0] || (major === needed[0] && minor < needed[1]))
  throw new KhepriError(
    'CONFIG_INVALID',
    `khepri needs Node.js ${needed.join('.')} or newer, and this is ${process.versions.node} (${process.execPath})`,
    { fix: 'install Node.js 24, or put a newer one first on the PATH' },
  )
