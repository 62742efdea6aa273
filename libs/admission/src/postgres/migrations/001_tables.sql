-- formerly sha256 2d50a219cb2157a8061a797c797d95737e16c5d44253560eebe55924ec8dcb02
-- formerly sha256 5996225ebc7765fecb64d270a4ecf61d142e916125a373d31390e1abcc40726b
-- Tables of the admission store. A change of a tenant's row, keys, buckets or holds first locks the tenant's row;
-- several tenants are locked in ascending order. So nothing else needs a lock, and calls cannot deadlock. Instants are
-- bigint, because every function takes an injected "now" for the tests; the unit is in the name.

CREATE TABLE tenant (
  tenant_id text COLLATE "C" PRIMARY KEY,
  -- Of the newest balance update; 0: none arrived yet.
  version bigint NOT NULL DEFAULT 0,
  balance_nanos bigint NOT NULL DEFAULT 0,
  suspended boolean NOT NULL DEFAULT false,
  -- Running sums over the tenant's hold rows, and the number of pending ones.
  settled_nanos bigint NOT NULL DEFAULT 0 CHECK (settled_nanos >= 0),
  pending_nanos bigint NOT NULL DEFAULT 0 CHECK (pending_nanos >= 0),
  in_flight bigint NOT NULL DEFAULT 0 CHECK (in_flight >= 0),
  -- Settled in `month` (year × 12 + month − 1, UTC): counts against the tenant's budget. Of an older month: nothing is
  -- spent yet.
  month int NOT NULL DEFAULT 0,
  spent_nanos bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

-- The same per inference key; created at its first request.
CREATE TABLE key_state (
  tenant_id text COLLATE "C",
  key_id text COLLATE "C",
  pending_nanos bigint NOT NULL DEFAULT 0 CHECK (pending_nanos >= 0),
  in_flight bigint NOT NULL DEFAULT 0 CHECK (in_flight >= 0),
  month int NOT NULL DEFAULT 0,
  spent_nanos bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (tenant_id, key_id)
) WITH (fillfactor = 50);

-- Rate limits by GCRA: the instant at which the bucket is full again. A bucket holds one minute's worth and refills
-- evenly. An amount is admitted if it moves that instant to at most a minute from now. Key '' is the tenant's own.
-- Unlogged: after a crash of Postgres all buckets are full, and nothing else is lost.
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
  -- Counted against the token limits at admission, and those limits. Corrected when the real number is known.
  hold_tokens bigint NOT NULL,
  key_tokens_per_minute bigint NOT NULL,
  tenant_tokens_per_minute bigint NOT NULL,
  -- In force at admission; null: none. An extension must fit into them too.
  key_budget_nanos bigint,
  tenant_budget_nanos bigint,
  -- Pending: past it the request counts as dead.
  deadline_ms bigint NOT NULL,
  -- What the last heartbeat recorded: { promptTokens, cachedTokens, completionTokens, costNanos }; null: nothing yet.
  delivered jsonb,
  progressed_ms bigint NOT NULL,
  -- Settled: since when the ledger owes its release. Each sweep that returns it moves it forward.
  unconfirmed_since_ms bigint,
  -- Pending: the draft of the usage event. Settled: the event.
  record json NOT NULL
) WITH (
  fillfactor = 85,
  autovacuum_vacuum_scale_factor = 0.02,
  autovacuum_vacuum_threshold = 20000,
  autovacuum_vacuum_cost_delay = 0
);

-- Not on deadline_ms: a heartbeat moves it once a second for every running request, and so stays a HOT update. The
-- sweep reads all pending rows, which are no more than the running requests.
CREATE INDEX hold_pending ON hold (id) WHERE state = 'pending';
CREATE INDEX hold_unconfirmed ON hold (unconfirmed_since_ms) WHERE state = 'settled';
