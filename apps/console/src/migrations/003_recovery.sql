-- A link with which a person sets a new password. Only the hash of its secret is stored. It works once: its use deletes
-- all links of the person.
CREATE TABLE recovery (
  token_hash text PRIMARY KEY,
  user_id text NOT NULL REFERENCES "user" ON DELETE CASCADE,
  -- The tenant whose owner made it. It works while the person belongs to no other tenant, and is no operator.
  tenant_id text,
  -- It went to the address of the person, who asked for it.
  mailed boolean NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz NOT NULL
);
CREATE INDEX ON recovery (user_id);
