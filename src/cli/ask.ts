import { createInterface } from 'node:readline'

/** Asks a question at the terminal; only y and yes mean yes. An end of input means no, Ctrl-C ends the process. */
export function ask(question: string): Promise<boolean> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  return new Promise((resolve) => {
    // Who asked has to be interrupted as any program is, so that a script around it stops as well.
    terminal.once('SIGINT', () => process.kill(process.pid, 'SIGINT'))
    terminal.once('close', () => resolve(false))
    terminal.question(`${question} [y/N] `, (answer) => {
      resolve(/^y(es)?$/i.test(answer.trim()))
      terminal.close()
    })
  })
}
