-- Who changed what in this service. Append-only, by rights and by triggers.
CREATE TABLE audit_log (
  id text COLLATE "C" PRIMARY KEY CHECK (id ~ '^aud_[0-9a-z]{26}$'),
  at timestamptz(3) NOT NULL,
  author_kind text NOT NULL CHECK (author_kind <> ''),
  -- Null for the operator secret and for a service.
  author_id text COLLATE "C",
  author_name text,
  address text,
  request_id text COLLATE "C",
  action text NOT NULL CHECK (action <> ''),
  tenant_id text COLLATE "C",
  target text COLLATE "C",
  before jsonb,
  after jsonb
);
CREATE INDEX audit_log_tenant ON audit_log (tenant_id, id DESC);
