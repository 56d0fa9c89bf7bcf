#!/usr/bin/env node
'use strict'

// CommonJS that even Node 8 can read, so that an old Node gets a sentence and not a syntax error.
// biome-ignore-start lint/style/useNodejsImportProtocol: Node 8 does not know "node:"
const fs = require('fs')
const os = require('os')
const path = require('path')
const nodeModule = require('module')
// biome-ignore-end lint/style/useNodejsImportProtocol: see above

const needed = [22, 18]
const entry = path.join(__dirname, '..', 'dist', 'cli.js')

function isTooOld(version) {
  const [major, minor] = version.split('.').map(Number)
  return major < needed[0] || (major === needed[0] && minor < needed[1])
}

function refuse(message, fix) {
  const isJson = process.argv.indexOf('--json') !== -1
  const error = { code: 'CONFIG_INVALID', message, fix, exit: 78 }
  process.stderr.write(isJson ? `${JSON.stringify({ error })}\n` : `error: ${message}\n  fix: ${fix}\n`)
  process.exitCode = 78
}

/** Makes the folders of a path one by one: the recursive form never returns for some paths below /proc. */
function makeFolder(folder) {
  if (fs.existsSync(folder)) return
  makeFolder(path.dirname(folder))
  fs.mkdirSync(folder, { mode: 0o700 })
}

/** A folder that nobody else can write code into. */
function isPrivate(folder) {
  const facts = fs.lstatSync(folder)
  return facts.isDirectory() && (!process.getuid || (facts.uid === process.getuid() && (facts.mode & 0o077) === 0))
}

function cacheFolder() {
  if (process.env.XDG_CACHE_HOME) return process.env.XDG_CACHE_HOME
  return path.join(os.homedir(), process.platform === 'darwin' ? 'Library/Caches' : '.cache')
}

/** Keeps compiled code between runs, which makes the start much shorter. Without such a folder all works, only slower. */
function keepCompiledCode() {
  try {
    const folder = path.join(cacheFolder(), 'khepri')
    makeFolder(folder)
    if (isPrivate(folder)) nodeModule.enableCompileCache(folder)
  } catch (_noCache) {}
}

/** Libraries ask for the home folder while they load, which throws for a user whom the system does not know. */
function provideHome() {
  try {
    os.homedir()
  } catch (_noHome) {
    process.env.HOME = '/'
  }
}

if (isTooOld(process.versions.node)) {
  refuse(
    `khepri needs Node.js ${needed.join('.')} or newer, and this is ${process.versions.node} (${process.execPath})`,
    'install Node.js 24, or put a newer one first on the PATH',
  )
} else if (!fs.existsSync(entry)) {
  refuse(`khepri is not built: ${path.relative(process.cwd(), entry)} is missing`, 'npm run build')
} else {
  provideHome()
  if (!process.env.NODE_COMPILE_CACHE) keepCompiledCode()
  require(entry).main(process.argv.slice(2))
}
