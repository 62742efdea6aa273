-- A part of completion_tokens, as the backend reports it. 0: none, or unknown.
ALTER TABLE usage_event ADD COLUMN reasoning_tokens integer NOT NULL DEFAULT 0;
ALTER TABLE usage_hour ADD COLUMN reasoning_tokens bigint NOT NULL DEFAULT 0;
