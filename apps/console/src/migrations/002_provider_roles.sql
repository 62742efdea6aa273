-- Roles that a provider of OpenID Connect gives by its groups. Each sign-in there sets them anew. Roles of invitations
-- stay as they are.
ALTER TABLE membership ADD COLUMN by_provider boolean NOT NULL DEFAULT false;
CREATE TABLE provider_operator (
  user_id text PRIMARY KEY REFERENCES "user" ON DELETE CASCADE,
  created_at timestamptz NOT NULL DEFAULT now()
);
-- Its link went to its address by mail and was shown to nobody, so who has it owns the address.
ALTER TABLE invitation ADD COLUMN mailed boolean NOT NULL DEFAULT false;
