import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Peer } from '../peer.ts'
import { databaseOf, peer as library } from './khepri.ts'

/** A job module as a user writes one; it reports to the process that started its worker. */
const module = (handlers: string): string => `import { countingHandle } from ${JSON.stringify(handlers)}
const handle = countingHandle()
export default (payload, { attempt }) => handle(payload, attempt)
`

/** khepri through \`khepri work\`, which the benchmark itself starts in a folder that is prepared here. */
export const peer: Peer = {
  ...library,
  async prepare(place) {
    await library.prepare(place)
    mkdirSync(join(place.folder, 'jobs'))
    writeFileSync(join(place.folder, 'package.json'), '{ "type": "module" }')
    writeFileSync(join(place.folder, 'jobs/bench.mjs'), module(new URL('handlers.js', import.meta.url).href))
    const config = { database: databaseOf(place), jobs: './jobs' }
    writeFileSync(join(place.folder, 'khepri.config.mjs'), `export default ${JSON.stringify(config)}\n`)
  },
}
