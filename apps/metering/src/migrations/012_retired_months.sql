-- Months of usage_event that are no longer kept (docs/decisions/0030-retention.md), each with its way to the end:
-- closed for events, summed, confirmed by billing, dropped. functions/retention.sql writes this table.
CREATE TABLE retired_month (
  -- The first day (UTC).
  month date PRIMARY KEY,
  -- Its ids: from this one up to, but without, the other. The months adjoin; the first one begins with ''.
  from_id text COLLATE "C" NOT NULL,
  until_id text COLLATE "C" NOT NULL,
  closed_at timestamptz NOT NULL DEFAULT now(),
  -- Set once the rollups are proven to be the sums of its events.
  summed_at timestamptz,
  -- The totals of its events, as reconcile computes them.
  events bigint,
  cost_nanos numeric,
  digest numeric,
  -- The first full hour without an event of this month.
  exact_from timestamptz,
  -- Set once billing has the same totals of its charges.
  confirmed_at timestamptz,
  dropped_at timestamptz
);

-- Requests of dropped months that did not end normally, which usage_hour does not count.
CREATE TABLE dropped_unfinished (
  tenant_id text COLLATE "C" NOT NULL,
  hour timestamptz NOT NULL,
  model text COLLATE "C" NOT NULL,
  key_id text COLLATE "C" NOT NULL,
  failed bigint NOT NULL,
  client_closed bigint NOT NULL,
  PRIMARY KEY (tenant_id, hour, model, key_id)
);
