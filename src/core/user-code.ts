/**
 * What of the user's code this process has loaded, and what of it is loading now: kept for whoever must name the guilty
 * file when the process comes to an end or an error comes from nowhere.
 */

interface Load {
  /** How messages name the file. */
  readonly source: string
}

const loading = new Set<Load>()
/** How messages name each file that was loaded by its own path. */
const sources = new Map<string, string>()
let hearLoads: (source: string | null) => void = () => {}
let tellSlow: (source: string) => void = () => {}

/** Remembers that a file is being loaded; the result is called when that has ended. */
export function startLoading(path: string, source: string): () => void {
  const load = { source }
  loading.add(load)
  sources.set(path, source)
  tellLoads()
  return () => {
    loading.delete(load)
    tellLoads()
  }
}

const tellLoads = (): void => hearLoads(filesLoading().at(-1) ?? null)

/** Hears what is loading whenever that changes, null for nothing; one listener a process. The result ends it. */
export function onLoads(listener: (source: string | null) => void): () => void {
  hearLoads = listener
  return () => {
    hearLoads = () => {}
  }
}

/** The files that are being loaded at this moment, as messages name them. */
export const filesLoading = (): readonly string[] => [...loading].map(({ source }) => source)

/** Tells who listens that a file takes long to load. */
export function tellSlowLoad(source: string): void {
  hearLoads(null)
  tellSlow(source)
}

/** From now on hears of files that take long to load; one listener a process. */
export function onSlowLoad(listener: (source: string) => void): void {
  tellSlow = listener
}

/** The user's file that an error comes from, as far as its stack names one; null where it does not. */
export function fileBehind(error: unknown): string | null {
  const stack = stackOf(error)
  const found = [...sources]
    .filter(([path]) => stack.includes(path))
    .sort(([a], [b]) => stack.indexOf(a) - stack.indexOf(b))
  return found[0]?.[1] ?? null
}

/** Whatever was thrown may throw again when it is looked at. */
function stackOf(error: unknown): string {
  try {
    return error instanceof Error ? String(error.stack) : ''
  } catch {
    return ''
  }
}

let askForRunning: () => readonly string[] = () => []

/** From now on knows whom to ask which jobs run in this process; one answer a process. */
export function onAskForRunning(answer: () => readonly string[]): void {
  askForRunning = answer
}

/** The jobs whose handlers run at this moment, as messages name them. */
export const jobsRunning = (): readonly string[] => askForRunning()
