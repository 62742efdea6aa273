-- formerly sha256 b085df816984a0bd8252a542c58af5d9a5f3ab31c65673d71a6cc68ecd366414
-- formerly sha256 2f9ce0938b8652a1df7febae3552e7bcb06ac6103ef51f06fffcccd9267bac31
-- What the edge must know of each credential: auth's projection, rebuilt from auth's own tables when it is lost.

-- The number of the last change. `put` increments it first, and so locks this row until it commits. Numbers become
-- visible in their order: a reader that has seen number n has seen all before it.
CREATE TABLE last_change (
  only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  number bigint NOT NULL
);
INSERT INTO last_change (number) VALUES (0);

CREATE TABLE credential (
  hash text COLLATE "C" PRIMARY KEY CHECK (hash ~ '^[0-9a-f]{64}$'),
  kind text NOT NULL CHECK (kind IN ('key', 'token')),
  id text NOT NULL,
  tenant_id text NOT NULL,
  plan text NOT NULL,
  profile text NOT NULL,
  scopes text[] NOT NULL,
  expires_at_ms bigint,
  revoked_at_ms bigint,
  version bigint NOT NULL,
  -- Shared by all records of one `put`.
  change bigint NOT NULL
);
CREATE INDEX credential_change ON credential (change, hash);
