-- The schema "auth" as the version before 2026-11-23 left it: its numbered migrations in one, without comments and without functions
-- that a later one of them replaced. For tests of the upgrade; what is in force is in apps/auth/src.
CREATE TABLE schema_migration (
  number int PRIMARY KEY, name text NOT NULL, checksum text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now());
CREATE TABLE tenant (
  id text COLLATE "C" PRIMARY KEY CHECK (id ~ '^ten_[0-9a-z]{26}$'),
  name text NOT NULL CHECK (name = btrim(name) AND char_length(name) BETWEEN 1 AND 100),
  plan text NOT NULL CHECK (plan <> ''),
  status text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'suspended')),
  created_at timestamptz(3) NOT NULL DEFAULT now()
);
CREATE TABLE credential (
  id text COLLATE "C" PRIMARY KEY,
  kind text NOT NULL CHECK (kind IN ('key', 'token')),
  tenant_id text COLLATE "C" NOT NULL REFERENCES tenant,
  name text NOT NULL CHECK (name = btrim(name) AND char_length(name) BETWEEN 1 AND 100),
  hash text COLLATE "C" NOT NULL UNIQUE CHECK (hash ~ '^[0-9a-f]{64}$'),
  last4 text NOT NULL CHECK (char_length(last4) = 4),
  profile text NOT NULL DEFAULT '',
  scopes text[] NOT NULL DEFAULT '{}',
  created_at timestamptz(3) NOT NULL DEFAULT now(),
  expires_at timestamptz(3),
  revoked_at timestamptz(3),
  last_used_at timestamptz(3),
  version int NOT NULL DEFAULT 1 CHECK (version >= 1),
  projected_version int NOT NULL DEFAULT 0 CHECK (projected_version BETWEEN 0 AND version),
  CHECK (id ~ CASE kind WHEN 'key' THEN '^key_[0-9a-z]{26}$' ELSE '^tok_[0-9a-z]{26}$' END),
  CHECK ((kind = 'key') = (profile <> '')),
  CHECK ((kind = 'token') = (cardinality(scopes) > 0))
);
CREATE INDEX credential_page ON credential (tenant_id, kind, id DESC);
CREATE INDEX credential_unprojected ON credential (id) WHERE projected_version < version;
ALTER TABLE tenant ADD COLUMN status_version int NOT NULL DEFAULT 0;
CREATE TABLE outbox (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, topic text NOT NULL, data jsonb NOT NULL, created_at timestamptz NOT NULL DEFAULT now());
CREATE TABLE outbox_refused (id bigint PRIMARY KEY, topic text NOT NULL, data jsonb NOT NULL, created_at timestamptz NOT NULL, refused_reason text NOT NULL, refused_at timestamptz NOT NULL DEFAULT now());
CREATE FUNCTION refuse_return() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE insufficient_privilege USING MESSAGE = format('credential %s: what is revoked stays revoked, and versions only go up', OLD.id);
END $$;
CREATE TRIGGER revoked_for_good BEFORE UPDATE ON credential FOR EACH ROW
  WHEN ((OLD.revoked_at IS NOT NULL AND NEW.revoked_at IS DISTINCT FROM OLD.revoked_at) OR NEW.version < OLD.version) EXECUTE FUNCTION refuse_return();
INSERT INTO schema_migration (number, name, checksum) VALUES
  (1, '001_auth.sql', '8c3436decbf5bcf325316e0380295a04e4bf36db8f017fac093464fccc1428df'),
  (2, '002_suspension.sql', 'e4d8e012052f9d881cd1a7553ab72fa606bbed73c87cd030bbf60f2bc3d9b2d5'),
  (3, '003_revoked_for_good.sql', '9162f9efbad2a6d24d349633d914f02ba014084e7be6b7d87f8e3ef765f047ba');
