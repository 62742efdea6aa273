-- formerly sha256 ed03c8b24fd1ff56db58b8e03479f2eb8ddb188471408766d4f13e306ef321d6
-- Each threshold of a tenant's or a key's budget is recorded once in a month, whatever becomes of the amount. Before,
-- an amount that was changed counted as another budget, which told its thresholds anew: of what was told more than once
-- the first stays. USER: all triggers but those of foreign keys. A new schema has none yet.
ALTER TABLE budget_event DISABLE TRIGGER USER;
DELETE FROM budget_event e WHERE EXISTS (
  SELECT FROM budget_event f
  WHERE (f.tenant_id, f.period, f.key_id, f.threshold_percent) = (e.tenant_id, e.period, e.key_id, e.threshold_percent) AND f.id < e.id);
ALTER TABLE budget_event ENABLE TRIGGER USER;
ALTER TABLE budget_event DROP CONSTRAINT budget_event_pkey, ADD PRIMARY KEY (tenant_id, period, key_id, threshold_percent);
