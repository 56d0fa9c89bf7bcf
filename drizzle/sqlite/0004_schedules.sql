-- least worker: 0.1.0
CREATE TABLE `$schedules` (
	`name` text PRIMARY KEY NOT NULL,
	`definition` text NOT NULL,
	`cadence` text NOT NULL,
	`defined_at` integer NOT NULL,
	`last_slot` integer NOT NULL,
	`missed` integer DEFAULT 0 NOT NULL,
	`waiting_slot` integer,
	`paused_at` integer,
	`last_job` integer,
	`fired_at` integer
);
--> statement-breakpoint
CREATE TABLE `$slots` (
	`schedule` text NOT NULL,
	`slot` integer NOT NULL,
	`job_id` integer,
	PRIMARY KEY(`schedule`, `slot`)
);
--> statement-breakpoint
CREATE TABLE `$ticks` (
	`id` integer PRIMARY KEY NOT NULL,
	`ticked_at` integer NOT NULL,
	`ticker` text NOT NULL
);
