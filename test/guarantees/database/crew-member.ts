import { type Ended, Live, type StartOptions } from '../../support/live.ts'

/** A worker process, and what it says about the store and about itself. */
export class CrewMember {
  readonly live: Live
  /** The lines on its stderr so far. */
  readonly told: string[] = []

  private constructor(live: Live) {
    this.live = live
    live.child.stderr?.on('data', (text: string) => this.told.push(...text.split('\n').filter((line) => line !== '')))
  }

  /** Starts it, and waits until it works. */
  static async hire(options: StartOptions): Promise<CrewMember> {
    const member = new CrewMember(Live.start(['work', '--concurrency=6', '--log=results'], options))
    await member.live.until(/Ctrl-C stops gently/)
    return member
  }

  get pid(): number {
    return this.live.child.pid ?? 0
  }

  /** Lets it drain; null where it did not end in time. */
  async dismiss(withinMs: number): Promise<Ended | null> {
    this.live.kill('SIGTERM')
    const { promise, resolve } = Promise.withResolvers<null>()
    const timer = setTimeout(() => resolve(null), withinMs)
    const ended = await Promise.race([this.live.ended, promise])
    clearTimeout(timer)
    return ended
  }
}
