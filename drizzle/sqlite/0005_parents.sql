-- least worker: 0.1.0
CREATE TABLE `$parents` (
	`parent` integer NOT NULL,
	`child` integer NOT NULL,
	`on_failure` text NOT NULL,
	`available_at` integer NOT NULL,
	`lost` integer DEFAULT 0 NOT NULL,
	PRIMARY KEY(`parent`, `child`)
);
--> statement-breakpoint
CREATE INDEX `$parents_child` ON `$parents` (`child`);