/**
 * A clock on the wall as somebody sees it who looks at it once a minute and writes down what it shows. Knows nothing of
 * offsets, and nothing of how khepri reads them.
 */

/** What a clock shows, as milliseconds as if it were UTC. */
export type Face = number

/** What was seen in one minute. */
export interface Minute {
  readonly at: number
  readonly face: Face
  /** The clock has shown this before. */
  readonly isAgain: boolean
  /** The clock will show this once more. */
  readonly isTwice: boolean
  /** What the clock should have shown since the minute before, and did not. */
  readonly skipped: readonly Face[]
}

const minuteMs = 60_000

const formats = new Map<string, Intl.DateTimeFormat>()

function formatOf(zone: string): Intl.DateTimeFormat {
  const known = formats.get(zone)
  if (known !== undefined) return known
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone: zone,
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
  })
  formats.set(zone, format)
  return format
}

/** What the clock of a zone shows at an instant. */
export function faceAt(zone: string, at: number): Face {
  const text = formatOf(zone).format(at)
  const [, month, day, year, hour, minute] = /^(\d+)\/(\d+)\/(\d+), (\d+):(\d+)$/.exec(text) ?? []
  return Date.UTC(Number(year), Number(month) - 1, Number(day), Number(hour), Number(minute))
}

/** Watches a clock from one whole minute on to another, which is no longer included. */
export function watch(zone: string, from: number, to: number): readonly Minute[] {
  const faces = Array.from({ length: (to - from) / minuteMs }, (_, index) => faceAt(zone, from + index * minuteMs))
  const first = new Map<Face, number>()
  const last = new Map<Face, number>()
  for (const [index, face] of faces.entries()) {
    if (!first.has(face)) first.set(face, index)
    last.set(face, index)
  }
  return faces.map((face, index) => ({
    at: from + index * minuteMs,
    face,
    isAgain: first.get(face) !== index,
    isTwice: last.get(face) !== index,
    skipped: facesBetween(faces[index - 1] ?? face, face),
  }))
}

function facesBetween(before: Face, face: Face): readonly Face[] {
  const skipped: Face[] = []
  for (let each = before + minuteMs; each < face; each += minuteMs) skipped.push(each)
  return skipped
}

/** Instants at which the clock of a zone was changed: found by looking every `stepMs`, to the minute. */
export function changesOf(zone: string, from: number, to: number, stepMs: number): readonly number[] {
  const offsetAt = (at: number): number => faceAt(zone, at) - at
  const changes: number[] = []
  for (let at = from; at < to; at += stepMs) {
    if (offsetAt(at) === offsetAt(at + stepMs)) continue
    let [early, late] = [at, at + stepMs]
    while (late - early > minuteMs) {
      const middle = Math.floor((early + late) / 2 / minuteMs) * minuteMs
      if (offsetAt(middle) === offsetAt(at)) early = middle
      else late = middle
    }
    changes.push(late)
  }
  return changes
}
