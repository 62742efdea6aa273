-- formerly sha256 8c3436decbf5bcf325316e0380295a04e4bf36db8f017fac093464fccc1428df
CREATE TABLE tenant (
  id text COLLATE "C" PRIMARY KEY CHECK (id ~ '^ten_[0-9a-z]{26}$'),
  name text NOT NULL CHECK (name = btrim(name) AND char_length(name) BETWEEN 1 AND 100),
  -- A plan of tollgate.yaml.
  plan text NOT NULL CHECK (plan <> ''),
  status text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'suspended')),
  created_at timestamptz(3) NOT NULL DEFAULT now()
);

-- Inference keys and management tokens. There is no column that could hold the value of one.
CREATE TABLE credential (
  id text COLLATE "C" PRIMARY KEY,
  kind text NOT NULL CHECK (kind IN ('key', 'token')),
  tenant_id text COLLATE "C" NOT NULL REFERENCES tenant,
  name text NOT NULL CHECK (name = btrim(name) AND char_length(name) BETWEEN 1 AND 100),
  hash text COLLATE "C" NOT NULL UNIQUE CHECK (hash ~ '^[0-9a-f]{64}$'),
  last4 text NOT NULL CHECK (char_length(last4) = 4),
  -- A profile of the tenant's plan; empty for a token.
  profile text NOT NULL DEFAULT '',
  -- Of a token; empty for a key.
  scopes text[] NOT NULL DEFAULT '{}',
  created_at timestamptz(3) NOT NULL DEFAULT now(),
  expires_at timestamptz(3),
  revoked_at timestamptz(3),
  last_used_at timestamptz(3),
  -- Incremented by every change that the edge must know. `projected_version` is the version last written to the
  -- credential store.
  version int NOT NULL DEFAULT 1 CHECK (version >= 1),
  projected_version int NOT NULL DEFAULT 0 CHECK (projected_version BETWEEN 0 AND version),
  CHECK (id ~ CASE kind WHEN 'key' THEN '^key_[0-9a-z]{26}$' ELSE '^tok_[0-9a-z]{26}$' END),
  CHECK ((kind = 'key') = (profile <> '')),
  CHECK ((kind = 'token') = (cardinality(scopes) > 0))
);
CREATE INDEX credential_page ON credential (tenant_id, kind, id DESC);
CREATE INDEX credential_unprojected ON credential (id) WHERE projected_version < version;
