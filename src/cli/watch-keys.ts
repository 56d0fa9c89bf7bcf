import type { Target, View } from './watch-view.ts'

/** What a key asks for: of the store, or of the screen itself. */
export type Order =
  | { readonly kind: 'retry'; readonly target: Target & { readonly kind: 'failed' } }
  | { readonly kind: 'cancel'; readonly target: Target & { readonly kind: 'running' } }
  | { readonly kind: 'pause' | 'resume'; readonly target: Target & { readonly kind: 'queue' } }
  | { readonly kind: 'quit' }

/** The view after a key, and what the key asks for besides. */
export interface Pressed {
  readonly view: View
  readonly order: Order | null
}

/** The view that a screen begins with. */
export const firstView: View = { at: 0, filter: '', isTyping: false, note: '' }

/** What a key does. targets: what can be selected, in the order of the screen. */
export function press(view: View, key: string, targets: readonly Target[]): Pressed {
  if (key === '\u0003') return { view, order: { kind: 'quit' } }
  if (view.isTyping) return { view: typed(view, key), order: null }
  const clear = { ...view, note: '' }
  switch (key) {
    case 'q':
      return { view, order: { kind: 'quit' } }
    case '/':
      return { view: { ...clear, isTyping: true, filter: '', at: 0 }, order: null }
    case '\u001b[A':
    case 'k':
      return { view: { ...clear, at: Math.max(0, Math.min(view.at, targets.length) - 1) }, order: null }
    case '\u001b[B':
    case 'j':
      return { view: { ...clear, at: Math.max(0, Math.min(targets.length - 1, view.at + 1)) }, order: null }
    default:
      return acted(clear, key, targets[view.at])
  }
}

/** A key that does not fit what is selected says so, and does nothing. */
function acted(view: View, key: string, target: Target | undefined): Pressed {
  if (key === 'r' && target?.kind === 'failed') return { view, order: { kind: 'retry', target } }
  if (key === 'c' && target?.kind === 'running') return { view, order: { kind: 'cancel', target } }
  if (key === 'p' && target?.kind === 'queue')
    return { view, order: { kind: target.paused ? 'resume' : 'pause', target } }
  const needs: Readonly<Record<string, string>> = { r: 'a failed job', c: 'a running job', p: 'a queue' }
  const needed = needs[key]
  return { view: needed === undefined ? view : { ...view, note: `select ${needed} first` }, order: null }
}

/** Return keeps the filter, Escape drops it. */
function typed(view: View, key: string): View {
  if (key === '\r' || key === '\n') return { ...view, isTyping: false }
  if (key === '\u001b') return { ...view, isTyping: false, filter: '' }
  if (key === '\u007f' || key === '\b') return { ...view, filter: view.filter.slice(0, -1) }
  return /^[^\p{Cc}]+$/u.test(key) ? { ...view, filter: view.filter + key } : view
}
