-- formerly sha256 872295124614b06d7430c59f2ec810b83a9e71f88bad08221417c7e96c997a30
-- Metering's tables: every served request once, its sums by hour and by tenant, and the charges on their way to
-- billing.

CREATE TYPE inference_kind AS ENUM ('chat', 'completion', 'embedding');
CREATE TYPE outcome AS ENUM ('complete', 'client_closed', 'upstream_error', 'credit_ended', 'expired');

-- One row per served request, written once and never changed. Partitioned by the id, which begins with the time at
-- which the request started. So months are partitions, and the primary key is unique over all of them; partitions by a
-- time column could not give that. Wide columns come first, so that no padding is stored.
CREATE TABLE usage_event (
  started_at timestamptz NOT NULL,
  ended_at timestamptz NOT NULL,
  rated_at timestamptz NOT NULL DEFAULT now(),
  -- Charged: the amount at which the hold was settled.
  cost_nanos bigint NOT NULL,
  -- Reported by the backend beyond the hold: not charged.
  overrun_nanos bigint NOT NULL,
  -- Null if cost + overrun is the cost of the tokens at the stamped prices; otherwise the cost by metering's own
  -- calculation. Gateway and metering then disagree.
  rated_nanos bigint,
  input_femtos bigint NOT NULL,
  cached_input_femtos bigint NOT NULL,
  output_femtos bigint NOT NULL,
  request_nanos bigint NOT NULL,
  prompt_tokens integer NOT NULL,
  -- A part of prompt_tokens.
  cached_tokens integer NOT NULL,
  completion_tokens integer NOT NULL,
  kind inference_kind NOT NULL,
  outcome outcome NOT NULL,
  stream boolean NOT NULL,
  estimated boolean NOT NULL,
  id text COLLATE "C" PRIMARY KEY,
  tenant_id text COLLATE "C" NOT NULL,
  key_id text COLLATE "C" NOT NULL,
  model text COLLATE "C" NOT NULL,
  price_version text COLLATE "C" NOT NULL
) PARTITION BY RANGE (id);

-- Serves the partial hours at the edges of a usage query.
CREATE INDEX usage_event_tenant_ended ON usage_event (tenant_id, ended_at);

-- Takes rows that fit no month's partition. The code creates months ahead (record/partitions.ts).
CREATE TABLE usage_event_default PARTITION OF usage_event DEFAULT;

-- Sums by the hour (UTC) in which requests ended; kept in the transaction that records the events.
CREATE TABLE usage_hour (
  tenant_id text COLLATE "C" NOT NULL,
  hour timestamptz NOT NULL,
  model text COLLATE "C" NOT NULL,
  key_id text COLLATE "C" NOT NULL,
  requests bigint NOT NULL,
  prompt_tokens bigint NOT NULL,
  cached_tokens bigint NOT NULL,
  completion_tokens bigint NOT NULL,
  -- Requests whose tokens Tollgate counted itself.
  estimated bigint NOT NULL,
  cost_nanos numeric NOT NULL,
  PRIMARY KEY (tenant_id, hour, model, key_id)
) WITH (fillfactor = 70);

-- Sums by tenant over all time, kept in the same transaction. Reconcile reads them.
CREATE TABLE tenant_sum (
  tenant_id text COLLATE "C" PRIMARY KEY,
  events bigint NOT NULL,
  cost_nanos numeric NOT NULL
) WITH (fillfactor = 70);

-- Events that cannot be recorded, with the reason, for an operator. A repeat only increments the count.
CREATE TABLE rejected_event (
  -- SHA-256 of the event's text.
  digest bytea PRIMARY KEY,
  reason text NOT NULL,
  -- The event as JSON text. jsonb would refuse some malformed events.
  event text NOT NULL,
  times bigint NOT NULL DEFAULT 1,
  first_at timestamptz NOT NULL DEFAULT now(),
  last_at timestamptz NOT NULL DEFAULT now()
);

-- The transactional outbox: a row is published if and only if its transaction commits. A row that can never be
-- published moves to outbox_refused.
CREATE TABLE outbox (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  topic text NOT NULL,
  data jsonb NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE outbox_refused (
  id bigint PRIMARY KEY,
  topic text NOT NULL,
  data jsonb NOT NULL,
  created_at timestamptz NOT NULL,
  refused_reason text NOT NULL,
  refused_at timestamptz NOT NULL DEFAULT now()
);
