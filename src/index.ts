import './core/require-node.ts'

export {
  type AppParts,
  createKhepri,
  type Khepri,
  type LoadOptions,
  loadKhepri,
  type ManyEntry,
  type WorkRequest,
} from './app.ts'
export type { Backoff, BackoffInput } from './core/backoff.ts'
export type { StartBeat } from './core/beat.ts'
export type { Clock, Random, Timer } from './core/clock.ts'
export { type Config, type ConfigInput, defineConfig } from './core/config.ts'
export { type JobContextValues, withContext } from './core/context.ts'
export { dispatch } from './core/default-khepri.ts'
export type { DispatchOptions, PayloadAndOptions, PayloadOf } from './core/dispatch-call.ts'
export type { DurationInput } from './core/duration.ts'
export { type ErrorCode, errorCodes, isKhepriError, KhepriError } from './core/errors.ts'
export type { Dropped } from './core/event-stream.ts'
export type { AnyEvent, DrainReason, Events, WorkerReport } from './core/events.ts'
export { type ExecutableInput, type ExecutableOptions, exec } from './core/executable.ts'
export {
  defineJob,
  Job,
  type JobContext,
  type JobDefinition,
  type JobOptions,
  type JobTerms,
  type Json,
  NonRetryable,
  nonRetryable,
  RetryAfter,
  release,
  type StandardSchema,
} from './core/job.ts'
export type { MemoryJob, MemoryQueue } from './core/memory-queue.ts'
export type { ScheduleInput } from './core/schedules-setting.ts'
export type { OpenScope } from './core/scope.ts'
export type { Admin, FailedFilter, FailedJob } from './core/store/admin.ts'
export type { Enqueued, NewJob, Store } from './core/store/store.ts'
export type { WorkHandle, WorkOptions } from './core/work.ts'
