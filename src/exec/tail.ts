/** The end of what somebody writes, in bounded memory. */
export class Tail {
  readonly #maxBytes: number
  readonly #chunks: Buffer[] = []
  #bytes = 0
  #isCut = false

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  push(chunk: Buffer): void {
    this.#chunks.push(chunk)
    this.#bytes += chunk.length
    while (this.#bytes - (this.#chunks[0]?.length ?? 0) >= this.#maxBytes) {
      this.#bytes -= this.#chunks.shift()?.length ?? 0
      this.#isCut = true
    }
  }

  /** The last bytes as text, beginning with a whole character. */
  get text(): string {
    const bytes = Buffer.concat(this.#chunks)
    const last = bytes.subarray(Math.max(0, bytes.length - this.#maxBytes))
    const isCut = this.#isCut || last.length < bytes.length
    return last.subarray(isCut ? restOfCharacter(last) : 0).toString('utf8')
  }

  /** The last line that is not empty; null where nothing was written. */
  get lastLine(): string | null {
    return (
      this.text
        .trim()
        .split(/[\r\n]+/)
        .at(-1)
        ?.trim() || null
    )
  }
}

/** How many bytes at the beginning belong to a character that was cut: at most three. */
function restOfCharacter(bytes: Buffer): number {
  const isRest = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80
  let count = 0
  while (count < 3 && isRest(bytes[count])) count++
  return count
}
