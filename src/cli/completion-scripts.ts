import { oneLine } from '../core/text.ts'
import type { Candidate, shells } from './completing.ts'

/** A shell that completion is offered for. */
export type Shell = (typeof shells)[number]

/** What a shell sources: on TAB it asks khepri itself. Where that offers nothing, the shell offers files. */
export const scripts: Readonly<Record<Shell, string>> = {
  bash: `_khepri() {
  local IFS=$'\\n'
  COMPREPLY=($(command "\${COMP_WORDS[0]}" completion bash --reply -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
  [[ \${COMPREPLY[0]} == *= ]] && compopt -o nospace
}
complete -o default -F _khepri khepri`,
  zsh: `#compdef khepri
_khepri() {
  local -a found
  found=("\${(@f)$(command \${words[1]} completion zsh --reply -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ -n "\${found[1]}" ]]; then _describe khepri found; else _files; fi
}
if [[ "$funcstack[1]" == _khepri ]]; then _khepri; else compdef _khepri khepri; fi`,
  fish: `function __khepri_complete
  set -l words (commandline -opc)
  command $words[1] completion fish --reply -- $words[2..] (commandline -ct) 2>/dev/null
end
complete -c khepri -f -a '(__khepri_complete)'
complete -c khepri -n '__fish_seen_subcommand_from dispatch run' -F
complete -c khepri -s C -l config -r -F`,
}

/** bash takes "=" for a word of its own, so that --queue=ma comes as three. */
export function wordsOf(shell: Shell, typed: readonly string[]): readonly string[] {
  if (shell !== 'bash') return typed
  const words: string[] = []
  for (const word of typed) {
    const last = words.at(-1)
    const isValue = last?.startsWith('--') === true && (word === '=' || last.endsWith('='))
    if (isValue) words.push(`${words.pop()}${word}`)
    else words.push(word)
  }
  return words
}

/** Candidates as a shell reads them, one a line, whatever stands in their names. */
export function reply(shell: Shell, found: readonly Candidate[], current: string): string {
  return found.map((candidate) => `${lines[shell](candidate, current)}\n`).join('')
}

const lines: Readonly<Record<Shell, (candidate: Candidate, current: string) => string>> = {
  bash: ({ word }, current) => quotedForBash(current.startsWith('--') ? word.replace(/^--[^=]+=/, '') : word),
  zsh: ({ word, about }) => `${oneLine(word).replaceAll(/[\\:]/g, '\\$&')}:${oneLine(about)}`,
  fish: ({ word, about }) => `${oneLine(word)}\t${oneLine(about)}`,
}

/** bash puts the word on the line as it is. */
const quotedForBash = (word: string): string => oneLine(word).replaceAll(/[^\w.,:/@%+=-]/g, '\\$&')
