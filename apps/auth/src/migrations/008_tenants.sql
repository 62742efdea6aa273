-- The operator's own id of a tenant, and its end. `closed_at` is final. Names need not be unique, this id is.
ALTER TABLE tenant
  ADD COLUMN external_id text COLLATE "C" UNIQUE CHECK (external_id ~ '^[A-Za-z0-9][A-Za-z0-9._:/@-]{0,127}$'),
  ADD COLUMN closed_at timestamptz(3),
  ADD COLUMN erased_at timestamptz(3),
  DROP CONSTRAINT tenant_status_check,
  ADD CONSTRAINT tenant_status_check CHECK (status IN ('active', 'suspended', 'closed')),
  ADD CONSTRAINT tenant_closed CHECK ((status = 'closed') = (closed_at IS NOT NULL)),
  ADD CONSTRAINT tenant_erased CHECK (erased_at IS NULL OR closed_at IS NOT NULL);
