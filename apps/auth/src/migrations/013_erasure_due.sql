-- When the audit logs lose the names of an erased tenant again. Null: they have lost all of them, or it is not erased.
-- Versions before this one left billing's log as it was.
ALTER TABLE tenant
  ADD COLUMN erasure_due_at timestamptz(3),
  ADD CONSTRAINT tenant_erasure_due CHECK (erasure_due_at IS NULL OR erased_at IS NOT NULL);
UPDATE tenant SET erasure_due_at = now() WHERE erased_at IS NOT NULL;
CREATE INDEX tenant_erasure_due_at ON tenant (erasure_due_at) WHERE erasure_due_at IS NOT NULL;
