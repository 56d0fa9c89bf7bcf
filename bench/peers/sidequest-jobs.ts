import { Job } from 'sidequest'
import type { Handle, Payload } from '../peer.ts'

/** The registry that sidequest reads in each process: it finds jobs by module and class. */
export class BenchJob extends Job {
  static handle: Handle = () => {}

  async run(payload: Payload): Promise<void> {
    await BenchJob.handle(payload, 1)
  }
}
