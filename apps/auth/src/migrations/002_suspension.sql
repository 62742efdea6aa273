-- A tenant's status is told to billing, and by it to where requests are admitted.
ALTER TABLE tenant ADD COLUMN status_version int NOT NULL DEFAULT 0;

-- The transactional outbox: what is written here is published if and only if the transaction commits. What can never be published rests in outbox_refused.
CREATE TABLE outbox (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, topic text NOT NULL, data jsonb NOT NULL, created_at timestamptz NOT NULL DEFAULT now());
CREATE TABLE outbox_refused (id bigint PRIMARY KEY, topic text NOT NULL, data jsonb NOT NULL, created_at timestamptz NOT NULL, refused_reason text NOT NULL, refused_at timestamptz NOT NULL DEFAULT now());
