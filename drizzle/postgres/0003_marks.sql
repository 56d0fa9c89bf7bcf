-- least worker: 0.1.0
ALTER TABLE "$schema"."$workers" ADD COLUMN "restart_at" bigint;--> statement-breakpoint
ALTER TABLE "$schema"."$workers" ADD COLUMN "asleep_until" bigint;