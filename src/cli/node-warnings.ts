/** Node says so before it throws the error that khepri reports, with a way out, in its own words. */
const saidTwice = /^Failed to load the ES module: /

/** Keeps Node's warning about a module to itself where an error about the same module follows; every other one is shown. */
export function hushNode(): void {
  const listeners = process.listeners('warning')
  process.removeAllListeners('warning')
  process.on('warning', (warning) => {
    if (!saidTwice.test(warning.message)) for (const listener of listeners) listener.call(process, warning)
  })
}
