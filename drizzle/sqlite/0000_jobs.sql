-- least worker: 0.1.0
CREATE TABLE `$ended` (
	`id` integer PRIMARY KEY NOT NULL,
	`state` text NOT NULL,
	`fence` integer NOT NULL,
	`queue` text NOT NULL,
	`priority` integer NOT NULL,
	`job` text NOT NULL,
	`failures` integer NOT NULL,
	`version` integer NOT NULL,
	`enqueued_at` integer NOT NULL,
	`ended_at` integer NOT NULL,
	`envelope` text NOT NULL
);
--> statement-breakpoint
CREATE INDEX `$ended_state` ON `$ended` (`state`,`ended_at`);--> statement-breakpoint
CREATE TABLE `$failed` (
	`id` integer PRIMARY KEY NOT NULL,
	`fence` integer NOT NULL,
	`queue` text NOT NULL,
	`priority` integer NOT NULL,
	`job` text NOT NULL,
	`failures` integer NOT NULL,
	`crashes` integer NOT NULL,
	`unique_key` text,
	`version` integer NOT NULL,
	`enqueued_at` integer NOT NULL,
	`failed_at` integer NOT NULL,
	`reason` text NOT NULL,
	`error_type` text NOT NULL,
	`error` text NOT NULL,
	`envelope` text NOT NULL
);
--> statement-breakpoint
CREATE INDEX `$failed_failed_at` ON `$failed` (`failed_at`,`id`);--> statement-breakpoint
CREATE TABLE `$jobs` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`queue` text NOT NULL,
	`priority` integer DEFAULT 0 NOT NULL,
	`available_at` integer NOT NULL,
	`worker` integer,
	`batch` integer,
	`fence` integer DEFAULT 0 NOT NULL,
	`started_at` integer,
	`failures` integer DEFAULT 0 NOT NULL,
	`crashes` integer DEFAULT 0 NOT NULL,
	`suspect` integer DEFAULT 0 NOT NULL,
	`cancelled_at` integer,
	`job` text NOT NULL,
	`unique_key` text,
	`version` integer NOT NULL,
	`enqueued_at` integer NOT NULL,
	`envelope` text NOT NULL
);
--> statement-breakpoint
CREATE INDEX `$jobs_ready` ON `$jobs` (`queue`,`priority`,`available_at`,`id`) WHERE "worker" is null;--> statement-breakpoint
CREATE INDEX `$jobs_held` ON `$jobs` (`worker`) WHERE "worker" is not null;--> statement-breakpoint
CREATE INDEX `$jobs_suspect` ON `$jobs` (`queue`,`available_at`) WHERE "suspect" = 1 and "worker" is null;--> statement-breakpoint
CREATE INDEX `$jobs_newer` ON `$jobs` (`queue`,`available_at`) WHERE "version" > 1 and "worker" is null;--> statement-breakpoint
CREATE INDEX `$jobs_cancelled` ON `$jobs` (`cancelled_at`) WHERE "cancelled_at" is not null and "worker" is null;--> statement-breakpoint
CREATE UNIQUE INDEX `$jobs_unique` ON `$jobs` (`unique_key`) WHERE "unique_key" is not null;