-- Thresholds that a change of the budget crossed. Spending does not record them again while the budget still makes them
-- reached. Once it is raised above them, spending may record them later in the month.
ALTER TABLE budget_month ADD COLUMN crossed smallint[] NOT NULL DEFAULT '{}';

-- 0: reached by spending, once a month. Otherwise the version of the budget whose change crossed it.
ALTER TABLE budget_event
  ADD COLUMN changed_version bigint NOT NULL DEFAULT 0,
  DROP CONSTRAINT budget_event_pkey,
  ADD PRIMARY KEY (tenant_id, period, key_id, threshold_percent, changed_version);
