-- least worker: 0.1.0
CREATE TABLE "$schema"."$parents" (
	"parent" bigint NOT NULL,
	"child" bigint NOT NULL,
	"on_failure" text NOT NULL,
	"available_at" bigint NOT NULL,
	"lost" integer DEFAULT 0 NOT NULL,
	CONSTRAINT "$parents_pk" PRIMARY KEY("parent","child")
);
--> statement-breakpoint
CREATE INDEX "$parents_child" ON "$schema"."$parents" USING btree ("child");