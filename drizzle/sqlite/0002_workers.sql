-- least worker: 0.1.0
CREATE TABLE `$queues` (
	`name` text PRIMARY KEY NOT NULL,
	`paused_at` integer NOT NULL,
	`paused_until` integer,
	`reason` text
);
--> statement-breakpoint
CREATE TABLE `$workers` (
	`id` integer PRIMARY KEY NOT NULL,
	`name` text NOT NULL,
	`version` text NOT NULL,
	`host` text NOT NULL,
	`boot_id` text,
	`pid_namespace` text,
	`pid` integer NOT NULL,
	`pid_start` text,
	`queues` text NOT NULL,
	`concurrency` integer NOT NULL,
	`lease_ms` integer NOT NULL,
	`state` text NOT NULL,
	`started_at` integer NOT NULL,
	`beat_at` integer NOT NULL,
	`dead_at` integer,
	`verdict` text,
	`blamed` text
);
