import { plainjob } from './plainjob.ts'

/** plainjob made as durable as khepri's dispatch is. */
export const peer = plainjob('FULL')
