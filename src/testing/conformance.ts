import { allCases } from './conformance/all-cases.ts'
import { type Capability, type ConformanceCase, contextOn, type Opened } from './conformance/context.ts'

/** What a store's author supplies: how to open it, and what it honestly cannot do. */
export interface Harness {
  /** Opens an empty database. Called once a case; cases never run at the same time. */
  open(): Promise<Opened>
  /** What this store cannot do and why; the cases that need it are skipped with that reason. Usually empty. */
  readonly lacks: Readonly<Partial<Record<Capability, string>>>
}

/** A case bound to one store: any test runner can run it. It fails by throwing. */
export interface RunnableCase {
  /** A sentence in the present tense. */
  readonly name: string
  /** Why this store need not pass it; null: it must. */
  readonly skip: string | null
  run(): Promise<void>
}

/** Binds every case that a store must pass to the store that the harness opens. */
export function storeConformance(harness: Harness): readonly RunnableCase[] {
  return allCases.map((one) => ({ name: one.name, skip: reasonToSkip(one, harness), run: () => runOn(harness, one) }))
}

function reasonToSkip({ needs = [] }: ConformanceCase, { lacks }: Harness): string | null {
  return needs.map((capability) => lacks[capability]).find((reason) => reason !== undefined) ?? null
}

async function runOn(harness: Harness, { run }: ConformanceCase): Promise<void> {
  const opened = await harness.open()
  try {
    await run(contextOn(opened))
  } finally {
    await opened.close()
  }
}
