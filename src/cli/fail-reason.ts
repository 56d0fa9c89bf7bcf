import type { FailReason } from '../core/store/store.ts'

/** The word for a reason in lines and records: `refused` alone would leave open who refused what. */
export const reasonWord = (reason: FailReason): string => (reason === 'refused' ? 'nonretryable' : reason)
