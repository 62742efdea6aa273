-- A link with which a person sets a new password. Only the hash of its secret is stored. It works once: its use deletes
-- all links of the person, and so does a change of the password.
CREATE TABLE recovery (
  token_hash text PRIMARY KEY,
  user_id text NOT NULL REFERENCES "user" ON DELETE CASCADE,
  -- Null: it went to the address of the person, who asked for it. 'operator-api', or the person who made it: then it
  -- works while that one could still make it.
  made_by text,
  -- The tenant whose owner made it. It works while the person belongs to no other tenant, and is no operator.
  tenant_id text CHECK (tenant_id IS NULL OR made_by IS NOT NULL),
  created_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz NOT NULL
);
CREATE INDEX ON recovery (user_id);
-- When a link last set the password. What a call began before does not outlive it.
ALTER TABLE "user" ADD COLUMN reset_at timestamptz;
-- Somebody else made that link, and may have had the account: its second factor may be of that one.
ALTER TABLE "user" ADD COLUMN reset_by_other boolean NOT NULL DEFAULT false;
