-- Sums of whole days (UTC) of the past, over the same columns as usage_hour. A key that is used all day has 24 rows
-- there, and one here. A query by day of a tenant with thousands of keys reads a million hours a month otherwise.
CREATE TABLE usage_day (
  tenant_id text COLLATE "C" NOT NULL,
  day timestamptz NOT NULL,
  model text COLLATE "C" NOT NULL,
  key_id text COLLATE "C" NOT NULL,
  requests bigint NOT NULL,
  prompt_tokens bigint NOT NULL,
  cached_tokens bigint NOT NULL,
  completion_tokens bigint NOT NULL,
  reasoning_tokens bigint NOT NULL,
  estimated bigint NOT NULL,
  cost_nanos numeric NOT NULL,
  PRIMARY KEY (tenant_id, day, model, key_id)
);

-- Sums of the hours of the same days without their keys: a few rows an hour, for charts of weeks by hour.
CREATE TABLE model_hour (
  tenant_id text COLLATE "C" NOT NULL,
  hour timestamptz NOT NULL,
  model text COLLATE "C" NOT NULL,
  requests bigint NOT NULL,
  prompt_tokens bigint NOT NULL,
  cached_tokens bigint NOT NULL,
  completion_tokens bigint NOT NULL,
  reasoning_tokens bigint NOT NULL,
  estimated bigint NOT NULL,
  cost_nanos numeric NOT NULL,
  PRIMARY KEY (tenant_id, hour, model)
);

-- One row. Every hour before `until` is in usage_day and in model_hour, and none after it. The days are added after the
-- start, one in a transaction (record/usage-days.ts), those of earlier versions too. So nothing waits for them here.
CREATE TABLE usage_folded (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  -- The beginning of a day.
  until timestamptz NOT NULL
);
INSERT INTO usage_folded (until) VALUES ('-infinity');
