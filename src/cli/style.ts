import { styleText } from 'node:util'

/** The styles of node:util that the command line uses. */
export type Style = Parameters<typeof styleText>[0]

/** Colours a text, or leaves it as it is where colours are off. */
export type Paint = (style: Style, text: string) => string

export type ColorChoice = 'auto' | 'always' | 'never'

/** What decides on colour besides the user's choice. */
export interface ColorSetting {
  readonly isTerminal: boolean
  readonly env: NodeJS.ProcessEnv
}

/** Tells whether a stream gets colour: --color, then FORCE_COLOR, then NO_COLOR, then whether it is a terminal. */
export function wantsColor(choice: ColorChoice, { isTerminal, env }: ColorSetting): boolean {
  if (choice !== 'auto') return choice === 'always'
  const forced = env['FORCE_COLOR']
  if (forced !== undefined) return forced !== '0' && forced !== 'false'
  if (env['NO_COLOR']) return false
  return isTerminal && env['TERM'] !== 'dumb'
}

/** Gives the paint for a stream. */
export function paintFor(color: boolean): Paint {
  return (style, text) => (color && text !== '' ? styleText(style, text, { validateStream: false }) : text)
}
