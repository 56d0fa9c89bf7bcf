/**
 * Numbers that look random and are the same for the same seed.
 *
 * Source: mulberry32, Tommy Ettinger, public domain; 2^32 numbers, which is far more than one run draws.
 */
export class Seeded {
  #state: number

  constructor(seed: number) {
    this.#state = Math.imul(seed + 1, 0x9e3779b1) | 0
  }

  /** A number in [0, 1). */
  readonly next = (): number => {
    this.#state = (this.#state + 0x6d2b79f5) | 0
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }

  /** A number in [min, max). */
  between(min: number, max: number): number {
    return min + this.next() * (max - min)
  }

  /** A whole number from min to max, both included. */
  whole(min: number, max: number): number {
    return Math.floor(this.between(min, max + 1))
  }

  chance(probability: number): boolean {
    return this.next() < probability
  }

  pick<T>(choices: readonly [T, ...T[]]): T {
    return choices[Math.floor(this.next() * choices.length)] as T
  }

  /** Another stream, so that what one part draws does not move what another one gets. */
  fork(): Seeded {
    return new Seeded(Math.floor(this.next() * 2 ** 32))
  }
}
