-- least worker: 0.1.0
CREATE TABLE `$attempts` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`job_id` integer NOT NULL,
	`fence` integer NOT NULL,
	`attempt` integer NOT NULL,
	`worker` text NOT NULL,
	`started_at` integer NOT NULL,
	`ended_at` integer NOT NULL,
	`error_type` text NOT NULL,
	`message` text NOT NULL,
	`stack` text,
	`output` text
);
--> statement-breakpoint
CREATE INDEX `$attempts_job` ON `$attempts` (`job_id`,`id`);