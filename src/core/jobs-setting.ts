import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { isRecord } from './config-keys.ts'
import { KhepriError } from './errors.ts'
import { jobBrand } from './job.ts'
import { checkName } from './terms.ts'
import { shown } from './text.ts'

/** One part of the setting `jobs`: a folder of modules, or a map from names to whatever stands for a handler. */
export type JobsEntry =
  | { readonly kind: 'folder'; readonly path: string; readonly shown: string }
  | { readonly kind: 'map'; readonly entries: readonly (readonly [name: string, value: unknown])[] }

const defaultFolder = './jobs'

/** Reads the setting `jobs`: a folder, a map, or a list of both. Where it is not given, ./jobs is taken if it exists. */
export function parseJobs(value: unknown, { root }: { readonly root: string }): readonly JobsEntry[] {
  if (value === undefined) return existsSync(join(root, defaultFolder)) ? [folder(defaultFolder, root)] : []
  return Array.isArray(value)
    ? value.map((each, index) => parseEntry(each, `jobs[${index}]`, root))
    : [parseEntry(value, 'jobs', root)]
}

function parseEntry(value: unknown, what: string, root: string): JobsEntry {
  if (typeof value === 'string' && value !== '') return folder(value, root)
  if (!isRecord(value)) throw invalid(`${what} must be a folder or a map from names to jobs, got ${shown(value)}`)
  if (jobBrand in value) throw invalid(`${what} is a job without a name`, `write { 'its-name': … } around it`)
  return {
    kind: 'map',
    entries: Object.entries(value).map(([name, entry]) => [
      checkName(name, `the name ${shown(name)} in ${what}`),
      wrapped(entry, `${what}.${name}`),
    ]),
  }
}

/** An object with a handler looks like a job and is none; said at once, where the program stands that wrote it. */
function wrapped(entry: unknown, what: string): unknown {
  if (hasBareHandle(entry)) throw invalid(`${what} has a handle and is no job yet`, 'wrap it in defineJob(…)')
  return entry
}

/** What throws when it is looked at is named by the registry, which has to look closer. */
function hasBareHandle(entry: unknown): boolean {
  try {
    return isRecord(entry) && 'handle' in entry && !(jobBrand in entry)
  } catch {
    return false
  }
}

const folder = (path: string, root: string): JobsEntry => ({ kind: 'folder', path: resolve(root, path), shown: path })

const invalid = (message: string, fix?: string): KhepriError =>
  new KhepriError('CONFIG_INVALID', message, fix === undefined ? {} : { fix })
