import { defineJob } from 'khepri'

/** Greets a user, whose row was committed together with this job. */
export const sendWelcome = defineJob<{ readonly userId: number }>({
  tries: 5,
  backoff: ['10s', '1m', '10m'],
  async handle({ userId }, { log }) {
    log(`greeting user ${userId}`)
  },
})

export const jobs = { 'send-welcome': sendWelcome }
