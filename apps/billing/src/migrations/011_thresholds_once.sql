-- formerly sha256 efd6346c1663cd54df83597f51f7c2f7a2d52b411e368e398320e68afb95cd68
-- formerly sha256 ed03c8b24fd1ff56db58b8e03479f2eb8ddb188471408766d4f13e306ef321d6
-- Each threshold is recorded once a month, even if the amount changes. Earlier versions recorded it again after a
-- change. Keeps the first record. USER: all triggers except those of foreign keys. A new schema has none yet.
ALTER TABLE budget_event DISABLE TRIGGER USER;
DELETE FROM budget_event e WHERE EXISTS (
  SELECT FROM budget_event f
  WHERE (f.tenant_id, f.period, f.key_id, f.threshold_percent) = (e.tenant_id, e.period, e.key_id, e.threshold_percent)
    AND f.id < e.id);
ALTER TABLE budget_event ENABLE TRIGGER USER;
ALTER TABLE budget_event
  DROP CONSTRAINT budget_event_pkey,
  ADD PRIMARY KEY (tenant_id, period, key_id, threshold_percent);
