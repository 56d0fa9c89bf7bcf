-- least worker: 0.1.0
CREATE TABLE "$schema"."$queues" (
	"name" text PRIMARY KEY NOT NULL,
	"paused_at" bigint NOT NULL,
	"paused_until" bigint,
	"reason" text
);
--> statement-breakpoint
CREATE TABLE "$schema"."$workers" (
	"id" bigint PRIMARY KEY NOT NULL,
	"name" text NOT NULL,
	"version" text NOT NULL,
	"host" text NOT NULL,
	"boot_id" text,
	"pid_namespace" text,
	"pid" integer NOT NULL,
	"pid_start" text,
	"queues" text NOT NULL,
	"concurrency" integer NOT NULL,
	"lease_ms" bigint NOT NULL,
	"state" text NOT NULL,
	"started_at" bigint NOT NULL,
	"beat_at" bigint NOT NULL,
	"dead_at" bigint,
	"verdict" text,
	"blamed" text
);
