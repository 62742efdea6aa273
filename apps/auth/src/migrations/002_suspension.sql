-- formerly sha256 e4d8e012052f9d881cd1a7553ab72fa606bbed73c87cd030bbf60f2bc3d9b2d5
-- Auth sends a tenant's status to billing, which sends it to the admission store.
ALTER TABLE tenant ADD COLUMN status_version int NOT NULL DEFAULT 0;

-- The transactional outbox: a row is published if and only if its transaction commits. A row that can never be
-- published moves to outbox_refused.
CREATE TABLE outbox (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  topic text NOT NULL,
  data jsonb NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE outbox_refused (
  id bigint PRIMARY KEY,
  topic text NOT NULL,
  data jsonb NOT NULL,
  created_at timestamptz NOT NULL,
  refused_reason text NOT NULL,
  refused_at timestamptz NOT NULL DEFAULT now()
);
