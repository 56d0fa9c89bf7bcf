-- least worker: 0.1.0
ALTER TABLE `$workers` ADD `restart_at` integer;--> statement-breakpoint
ALTER TABLE `$workers` ADD `asleep_until` integer;