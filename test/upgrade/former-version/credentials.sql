-- The schema "credentials" as the version before 2026-11-23 left it: its numbered migrations in one, without comments and without functions
-- that a later one of them replaced. For tests of the upgrade; what is in force is in libs/credentials/src/postgres.
CREATE TABLE schema_migration (
  number int PRIMARY KEY, name text NOT NULL, checksum text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now());
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
  change bigint NOT NULL
);
CREATE INDEX credential_change ON credential (change, hash);
CREATE FUNCTION notify_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('tollgate_credentials', '');
  RETURN NULL;
END $$;
CREATE TRIGGER notify_change AFTER INSERT OR UPDATE ON credential FOR EACH STATEMENT EXECUTE FUNCTION notify_change();
INSERT INTO schema_migration (number, name, checksum) VALUES
  (1, '001_credentials.sql', '2f9ce0938b8652a1df7febae3552e7bcb06ac6103ef51f06fffcccd9267bac31');
