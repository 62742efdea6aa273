-- Evidence from outside (docs/decisions/0009-engines-as-witnesses.md): which backend served a request, and what the engines behind the backends say that they did.

-- Null: not known. For a person who asks which requests a drift is about.
ALTER TABLE usage_event ADD COLUMN backend text COLLATE "C";

-- Sums by backend and hour (UTC), kept in the transaction that records the events. A backend has few rows an hour and every batch adds to them, so each connection has a shard of its own to add to.
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

-- What gateways reported of work that is not charged: at most so much. A report counts once.
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

-- How far they went in an hour.
CREATE TABLE engine_hour (
  hour timestamptz NOT NULL,
  engine text COLLATE "C" NOT NULL,
  -- Whose work it counts.
  backends text[] COLLATE "C" NOT NULL,
  -- False: prompt tokens that were cached are not among those that the engine counts.
  counts_cached boolean NOT NULL,
  -- From when to when it was watched, within the hour; null: it was asked and never answered.
  first_at timestamptz,
  last_at timestamptz,
  prompt_tokens bigint NOT NULL,
  generation_tokens bigint NOT NULL,
  restarts integer NOT NULL,
  PRIMARY KEY (hour, engine)
) WITH (fillfactor = 70);
