-- What the admission store keeps. Whoever changes anything of a tenant (its row, its keys, its buckets, its holds) first locks the
-- tenant's row, several tenants in ascending order: so nothing else needs a lock, and no two calls wait for each other in a circle.
-- Instants are bigint, as every function takes an injected "now" for the tests; the unit is in the name.

CREATE TABLE tenant (
  tenant_id text COLLATE "C" PRIMARY KEY,
  -- Of the last news that was newer than all before; 0: none came yet.
  version bigint NOT NULL DEFAULT 0,
  balance_nanos bigint NOT NULL DEFAULT 0,
  suspended boolean NOT NULL DEFAULT false,
  -- Running sums over the tenant's hold rows, and the number of pending ones.
  settled_nanos bigint NOT NULL DEFAULT 0 CHECK (settled_nanos >= 0),
  pending_nanos bigint NOT NULL DEFAULT 0 CHECK (pending_nanos >= 0),
  in_flight bigint NOT NULL DEFAULT 0 CHECK (in_flight >= 0),
  -- Settled in `month` (year × 12 + month − 1, UTC): counts against the tenant's budget. Of an older month: nothing is spent yet.
  month int NOT NULL DEFAULT 0,
  spent_nanos bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

-- The same per inference key; made at its first request.
CREATE TABLE key_state (
  tenant_id text COLLATE "C",
  key_id text COLLATE "C",
  pending_nanos bigint NOT NULL DEFAULT 0 CHECK (pending_nanos >= 0),
  in_flight bigint NOT NULL DEFAULT 0 CHECK (in_flight >= 0),
  month int NOT NULL DEFAULT 0,
  spent_nanos bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (tenant_id, key_id)
) WITH (fillfactor = 50);

-- Rate limits by GCRA: the instant at which the bucket is full again. A bucket holds one minute's worth and refills evenly; an amount is
-- let in when it moves that instant to at most a minute from now. Key '' is the tenant's own. Unlogged: after a crash of
-- Postgres all buckets are full, and nothing else is lost.
CREATE UNLOGGED TABLE bucket (
  tenant_id text COLLATE "C",
  key_id text COLLATE "C",
  requests_full_us bigint NOT NULL,
  tokens_full_us bigint NOT NULL,
  PRIMARY KEY (tenant_id, key_id)
) WITH (fillfactor = 50);

CREATE TABLE hold (
  id text COLLATE "C" PRIMARY KEY,
  tenant_id text COLLATE "C" NOT NULL,
  key_id text COLLATE "C" NOT NULL,
  state text NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'settled')),
  hold_nanos bigint NOT NULL,
  -- Set when settled; at most hold_nanos.
  cost_nanos bigint CHECK (cost_nanos BETWEEN 0 AND hold_nanos),
  output_tokens bigint NOT NULL,
  -- Counted on the token limits at admission, and the limits then: what to correct when the real number is known.
  hold_tokens bigint NOT NULL,
  key_tokens_per_minute bigint NOT NULL,
  tenant_tokens_per_minute bigint NOT NULL,
  -- In force at admission; null: none. An extension must fit into them too.
  key_budget_nanos bigint,
  tenant_budget_nanos bigint,
  -- Pending: past it the request counts as dead.
  deadline_ms bigint NOT NULL,
  -- What the last sign of life recorded: { promptTokens, cachedTokens, completionTokens, costNanos }; null: nothing yet.
  delivered jsonb,
  progressed_ms bigint NOT NULL,
  -- Settled: since when the ledger owes its release; moved on by each handing-out.
  unconfirmed_since_ms bigint,
  -- Pending: the draft of the usage event. Settled: the event.
  record json NOT NULL
) WITH (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0);

-- Not on deadline_ms: a sign of life moves it once a second for every running request, and stays a HOT update this way. The sweep reads
-- all pending rows, which are no more than the requests that run.
CREATE INDEX hold_pending ON hold (id) WHERE state = 'pending';
CREATE INDEX hold_unconfirmed ON hold (unconfirmed_since_ms) WHERE state = 'settled';

-- The store's clock. Ask after locking: what waited for a lock must not go by an old time.
CREATE FUNCTION now_us(p_now_ms bigint) RETURNS bigint LANGUAGE sql VOLATILE AS $$
  SELECT CASE WHEN p_now_ms IS NULL THEN (extract(epoch FROM clock_timestamp()) * 1000000)::bigint ELSE p_now_ms * 1000 END
$$;

CREATE FUNCTION month_of(p_now_us bigint) RETURNS int LANGUAGE sql STABLE AS $$
  SELECT (extract(year FROM d) * 12 + extract(month FROM d) - 1)::int FROM (SELECT to_timestamp(p_now_us / 1000000) AT TIME ZONE 'UTC' AS d)
$$;

-- How far `p_amount` moves the instant at which a bucket of `p_per_minute` is full. More than the whole bucket counts as the whole bucket: it
-- could never pass otherwise. Rounded down, so that a burst up to the limit always fits.
CREATE FUNCTION bucket_us(p_amount bigint, p_per_minute bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
  SELECT least(p_amount, p_per_minute) * 60000000 / p_per_minute
$$;

-- The most output tokens that `p_nanos` pays for beside the prompt; −1 where it does not even pay for the prompt. In numeric: femtos of a
-- large request exceed a bigint.
CREATE FUNCTION afford(p_nanos bigint, p_prompt_femtos numeric, p_output_femtos numeric) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE
    WHEN p_nanos::numeric * 1000000 < p_prompt_femtos THEN -1
    WHEN p_output_femtos = 0 THEN 9223372036854775807
    ELSE least(div(p_nanos::numeric * 1000000 - p_prompt_femtos, p_output_femtos), 9223372036854775807)
  END::bigint
$$;

-- Locks the tenants' rows in ascending order, makes the missing ones (with no balance), and answers nothing. The missing ones are made
-- before any is locked, all wanted ones attempted in order: whoever holds a lock never waits for an insert.
CREATE FUNCTION lock_tenants(p_tenant_ids text[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  v_ids text[] := array(SELECT DISTINCT u COLLATE "C" FROM unnest(p_tenant_ids) u ORDER BY 1);
BEGIN
  IF (SELECT count(*) FROM tenant WHERE tenant_id = ANY (v_ids)) < cardinality(v_ids) THEN
    INSERT INTO tenant (tenant_id) SELECT u FROM unnest(v_ids) WITH ORDINALITY AS w (u, n) ORDER BY n ON CONFLICT DO NOTHING;
  END IF;
  PERFORM FROM tenant WHERE tenant_id = ANY (v_ids) ORDER BY tenant_id FOR UPDATE;
END
$$;
