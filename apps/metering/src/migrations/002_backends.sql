-- formerly sha256 e7799539281ac06bdb4c7dbf66ca9fc3124754589927a5ead800f283cddd7cc7
-- External evidence (docs/decisions/0009-engines-as-witnesses.md): which backend served a request, and what the engines
-- behind the backends report.

-- Null: unknown. Tells an operator which requests a drift concerns.
ALTER TABLE usage_event ADD COLUMN backend text COLLATE "C";

-- Sums by backend and hour (UTC), kept in the transaction that records the events. A backend has few rows an hour, and
-- every batch adds to them. So each connection adds to its own shard.
CREATE TABLE backend_hour (
  hour timestamptz NOT NULL,
  -- `unknown` for events that name none.
  backend text COLLATE "C" NOT NULL,
  shard smallint NOT NULL,
  -- Of requests that ended in the hour.
  requests bigint NOT NULL,
  estimated bigint NOT NULL,
  prompt_tokens bigint NOT NULL,
  cached_tokens bigint NOT NULL,
  completion_tokens bigint NOT NULL,
  -- A part of them: of requests that began in an earlier hour, in which the engine may have counted them.
  early_prompt_tokens bigint NOT NULL,
  early_completion_tokens bigint NOT NULL,
  -- No part of them: of requests that ran in the hour and ended in a later one; the engine may have counted them here.
  late_prompt_tokens bigint NOT NULL,
  late_completion_tokens bigint NOT NULL,
  PRIMARY KEY (hour, backend, shard)
) WITH (fillfactor = 70);

-- Work that gateways reported as not charged: an upper bound. A report counts once.
CREATE TABLE backend_unbilled (
  report_id text COLLATE "C" NOT NULL,
  hour timestamptz NOT NULL,
  backend text COLLATE "C" NOT NULL,
  prompt_tokens bigint NOT NULL,
  completion_tokens bigint NOT NULL,
  PRIMARY KEY (report_id, hour, backend)
);
CREATE INDEX backend_unbilled_hour ON backend_unbilled (hour);

-- The engines' counters as they were last read.
CREATE TABLE engine_sample (
  -- The metrics page, without query.
  engine text COLLATE "C" PRIMARY KEY,
  sampled_at timestamptz NOT NULL,
  -- When the engine's process began, where the page says so.
  started_at timestamptz,
  prompt_tokens bigint NOT NULL,
  generation_tokens bigint NOT NULL
);

-- How much the engines' counters grew in an hour.
CREATE TABLE engine_hour (
  hour timestamptz NOT NULL,
  engine text COLLATE "C" NOT NULL,
  -- The backends whose work it counts.
  backends text[] COLLATE "C" NOT NULL,
  -- False: prompt tokens that were cached are not among those that the engine counts.
  counts_cached boolean NOT NULL,
  -- The period within the hour in which the engine was watched; null: it was asked and never answered.
  first_at timestamptz,
  last_at timestamptz,
  prompt_tokens bigint NOT NULL,
  generation_tokens bigint NOT NULL,
  restarts integer NOT NULL,
  PRIMARY KEY (hour, engine)
) WITH (fillfactor = 70);
