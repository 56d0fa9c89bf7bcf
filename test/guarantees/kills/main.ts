import { parseArgs } from 'node:util'
import type { Form } from '../part.ts'
import { run } from './run.ts'

/** Runs a kill campaign by hand: `node test/guarantees/kills/main.ts --form=short --seed=7`. */
const { values } = parseArgs({ options: { form: { type: 'string', default: 'short' }, seed: { type: 'string' } } })
const seed = values.seed === undefined ? {} : { seed: Number(values.seed) }
console.table(await run(values.form as Form, console.log, seed))
