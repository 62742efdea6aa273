-- formerly sha256 c5cb5e55781ab0cec648a9d3dde6c9f091e9dae5e8169c52cbb6693618411124
-- formerly sha256 f3b3bd3f72048637d510e335ea64e8a8f23e1fbd416cef957dd4a6f551badab9
-- Monthly budgets (calendar months in UTC) that the operator set. Key '' is the tenant's own, over all its keys. Rows
-- are never deleted: admission compares versions, which only grow. A tenant or key without a row has the default of the
-- configuration.
CREATE TABLE budget (
  tenant_id text COLLATE "C" NOT NULL REFERENCES tenant_books,
  key_id text COLLATE "C" NOT NULL,
  version bigint NOT NULL CHECK (version > 0),
  -- 'amount': `cents`. 'none': no budget, whatever the configuration says. 'default': what the configuration says.
  kind text NOT NULL CHECK (kind IN ('amount', 'none', 'default')),
  cents bigint CHECK (cents BETWEEN 0 AND 9007199254740991),
  -- Percent of the budget at which an event is recorded, ascending; null: those of the configuration.
  thresholds smallint[],
  changed_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, key_id),
  CHECK ((kind = 'amount') = (cents IS NOT NULL))
);

-- Spending of requests that ended in the month, by tenant (key '') and by key: sums over `charge`, kept in the
-- transaction that gathers them.
CREATE TABLE budget_month (
  tenant_id text COLLATE "C" NOT NULL REFERENCES tenant_books,
  period month NOT NULL,
  key_id text COLLATE "C" NOT NULL,
  spent_nanos numeric(30, 0) NOT NULL CHECK (spent_nanos >= 0),
  -- The default budget that the charge gathered last had; null: none.
  default_cents bigint CHECK (default_cents >= 0),
  PRIMARY KEY (tenant_id, period, key_id)
) WITH (fillfactor = 60);

-- Each threshold that a month's budget has reached, once. A changed amount counts as another budget (until 011).
CREATE TABLE budget_event (
  tenant_id text COLLATE "C" NOT NULL REFERENCES tenant_books,
  period month NOT NULL,
  key_id text COLLATE "C" NOT NULL,
  budget_cents bigint NOT NULL,
  threshold_percent smallint NOT NULL,
  spent_nanos numeric(30, 0) NOT NULL,
  id text COLLATE "C" NOT NULL UNIQUE,
  recorded_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, period, key_id, budget_cents, threshold_percent)
);

-- Existing charges.
INSERT INTO budget_month (tenant_id, period, key_id, spent_nanos)
  SELECT tenant_id, to_char(ended_at AT TIME ZONE 'UTC', 'YYYY-MM'), coalesce(key_id, ''), sum(cost_nanos)
  FROM charge GROUP BY tenant_id, 2, GROUPING SETS ((charge.key_id), ());

DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'tollgate_billing') THEN
    GRANT SELECT, INSERT, UPDATE ON budget, budget_month TO tollgate_billing;
    GRANT SELECT, INSERT ON budget_event TO tollgate_billing;
  END IF;
END $$;
