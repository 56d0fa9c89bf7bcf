-- least worker: 0.1.0
CREATE TABLE "$schema"."$schedules" (
	"name" text PRIMARY KEY NOT NULL,
	"definition" text NOT NULL,
	"cadence" text NOT NULL,
	"defined_at" bigint NOT NULL,
	"last_slot" bigint NOT NULL,
	"missed" integer DEFAULT 0 NOT NULL,
	"waiting_slot" bigint,
	"paused_at" bigint,
	"last_job" bigint,
	"fired_at" bigint
);
--> statement-breakpoint
CREATE TABLE "$schema"."$slots" (
	"schedule" text NOT NULL,
	"slot" bigint NOT NULL,
	"job_id" bigint,
	CONSTRAINT "$slots_schedule_slot_pk" PRIMARY KEY("schedule","slot")
);
--> statement-breakpoint
CREATE TABLE "$schema"."$ticks" (
	"id" integer PRIMARY KEY NOT NULL,
	"ticked_at" bigint NOT NULL,
	"ticker" text NOT NULL
);
