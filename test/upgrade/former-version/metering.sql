-- The schema "metering" as the version before 2026-11-23 left it: its numbered migrations in one, without comments and without functions
-- that a later one of them replaced. For tests of the upgrade; what is in force is in apps/metering/src.
CREATE TABLE schema_migration (
  number int PRIMARY KEY, name text NOT NULL, checksum text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now());
CREATE TYPE inference_kind AS ENUM ('chat', 'completion', 'embedding');
CREATE TYPE outcome AS ENUM ('complete', 'client_closed', 'upstream_error', 'credit_ended', 'expired');
CREATE TABLE usage_event (
  started_at timestamptz NOT NULL,
  ended_at timestamptz NOT NULL,
  rated_at timestamptz NOT NULL DEFAULT now(),
  cost_nanos bigint NOT NULL,
  overrun_nanos bigint NOT NULL,
  rated_nanos bigint,
  input_femtos bigint NOT NULL,
  cached_input_femtos bigint NOT NULL,
  output_femtos bigint NOT NULL,
  request_nanos bigint NOT NULL,
  prompt_tokens integer NOT NULL,
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
CREATE INDEX usage_event_tenant_ended ON usage_event (tenant_id, ended_at);
CREATE TABLE usage_event_default PARTITION OF usage_event DEFAULT;
CREATE TABLE usage_hour (
  tenant_id text COLLATE "C" NOT NULL,
  hour timestamptz NOT NULL,
  model text COLLATE "C" NOT NULL,
  key_id text COLLATE "C" NOT NULL,
  requests bigint NOT NULL,
  prompt_tokens bigint NOT NULL,
  cached_tokens bigint NOT NULL,
  completion_tokens bigint NOT NULL,
  estimated bigint NOT NULL,
  cost_nanos numeric NOT NULL,
  PRIMARY KEY (tenant_id, hour, model, key_id)
) WITH (fillfactor = 70);
CREATE TABLE tenant_sum (
  tenant_id text COLLATE "C" PRIMARY KEY,
  events bigint NOT NULL,
  cost_nanos numeric NOT NULL
) WITH (fillfactor = 70);
CREATE TABLE rejected_event (
  digest bytea PRIMARY KEY,
  reason text NOT NULL,
  event text NOT NULL,
  times bigint NOT NULL DEFAULT 1,
  first_at timestamptz NOT NULL DEFAULT now(),
  last_at timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE outbox (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, topic text NOT NULL, data jsonb NOT NULL, created_at timestamptz NOT NULL DEFAULT now());
CREATE TABLE outbox_refused (id bigint PRIMARY KEY, topic text NOT NULL, data jsonb NOT NULL, created_at timestamptz NOT NULL, refused_reason text NOT NULL, refused_at timestamptz NOT NULL DEFAULT now());
ALTER TABLE usage_event ADD COLUMN backend text COLLATE "C";
CREATE TABLE backend_hour (
  hour timestamptz NOT NULL,
  backend text COLLATE "C" NOT NULL,
  shard smallint NOT NULL,
  requests bigint NOT NULL,
  estimated bigint NOT NULL,
  prompt_tokens bigint NOT NULL,
  cached_tokens bigint NOT NULL,
  completion_tokens bigint NOT NULL,
  early_prompt_tokens bigint NOT NULL,
  early_completion_tokens bigint NOT NULL,
  late_prompt_tokens bigint NOT NULL,
  late_completion_tokens bigint NOT NULL,
  PRIMARY KEY (hour, backend, shard)
) WITH (fillfactor = 70);
CREATE TABLE backend_unbilled (
  report_id text COLLATE "C" NOT NULL,
  hour timestamptz NOT NULL,
  backend text COLLATE "C" NOT NULL,
  prompt_tokens bigint NOT NULL,
  completion_tokens bigint NOT NULL,
  PRIMARY KEY (report_id, hour, backend)
);
CREATE INDEX backend_unbilled_hour ON backend_unbilled (hour);
CREATE TABLE engine_sample (
  engine text COLLATE "C" PRIMARY KEY,
  sampled_at timestamptz NOT NULL,
  started_at timestamptz,
  prompt_tokens bigint NOT NULL,
  generation_tokens bigint NOT NULL
);
CREATE TABLE engine_hour (
  hour timestamptz NOT NULL,
  engine text COLLATE "C" NOT NULL,
  backends text[] COLLATE "C" NOT NULL,
  counts_cached boolean NOT NULL,
  first_at timestamptz,
  last_at timestamptz,
  prompt_tokens bigint NOT NULL,
  generation_tokens bigint NOT NULL,
  restarts integer NOT NULL,
  PRIMARY KEY (hour, engine)
) WITH (fillfactor = 70);
CREATE TABLE price_version (
  model text COLLATE "C" NOT NULL,
  kind inference_kind NOT NULL,
  version text COLLATE "C" NOT NULL,
  input_femtos bigint NOT NULL,
  cached_input_femtos bigint NOT NULL,
  output_femtos bigint NOT NULL,
  request_nanos bigint NOT NULL,
  first_seen_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (model, kind, version)
);
ALTER TABLE rejected_event
  ADD COLUMN event_id text COLLATE "C",
  ADD COLUMN tenant_id text COLLATE "C",
  ADD COLUMN price_version text COLLATE "C",
  ADD COLUMN dismissed_at timestamptz;
UPDATE rejected_event SET event_id = substring(event FROM '"id":"(req_[0-9a-z]{26})"'), tenant_id = substring(event FROM '"tenantId":"(ten_[0-9a-z]{26})"');
CREATE INDEX rejected_event_unpriced ON rejected_event (price_version) WHERE price_version IS NOT NULL;
CREATE FUNCTION id_bound(at timestamptz) RETURNS text LANGUAGE sql STABLE SET search_path = metering, pg_temp AS $$
  SELECT 'req_' || string_agg(substr('0123456789abcdefghjkmnpqrstvwxyz', (ms >> (5 * (9 - place)) & 31)::int + 1, 1), '' ORDER BY place) || repeat('0', 16)
  FROM (SELECT (extract(epoch FROM at) * 1000)::bigint AS ms) AS moment, generate_series(0, 9) AS place
$$;
CREATE FUNCTION add_month(of_year int, of_month int) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = metering, pg_temp SET lock_timeout = '2s' AS $$
DECLARE
  first timestamp := make_date(of_year, of_month, 1);
  name text := 'usage_event_' || to_char(first, 'YYYY_MM');
  from_id text := id_bound(first AT TIME ZONE 'UTC');
  to_id text := id_bound((first + interval '1 month') AT TIME ZONE 'UTC');
BEGIN
  IF of_year NOT BETWEEN 2020 AND 2199 THEN
    RAISE invalid_parameter_value USING MESSAGE = format('no events are of %s', to_char(first, 'YYYY-MM'));
  END IF;
  PERFORM pg_advisory_xact_lock(hashtextextended('tollgate-metering-partitions', 0));
  IF EXISTS (SELECT FROM pg_inherits WHERE inhparent = 'usage_event'::regclass AND inhrelid = to_regclass(name)) THEN
    RETURN false;
  END IF;
  LOCK TABLE usage_event_default IN ACCESS EXCLUSIVE MODE;
  EXECUTE format('CREATE TABLE %I (LIKE usage_event INCLUDING DEFAULTS INCLUDING INDEXES)', name);
  EXECUTE format('WITH moved AS (DELETE FROM usage_event_default WHERE id >= %L AND id < %L RETURNING *) INSERT INTO %I SELECT * FROM moved', from_id, to_id, name);
  EXECUTE format('ALTER TABLE usage_event ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', name, from_id, to_id);
  RETURN true;
END $$;
REVOKE ALL ON FUNCTION add_month(int, int) FROM PUBLIC;
INSERT INTO schema_migration (number, name, checksum) VALUES
  (1, '001_usage.sql', '872295124614b06d7430c59f2ec810b83a9e71f88bad08221417c7e96c997a30'),
  (2, '002_backends.sql', 'e7799539281ac06bdb4c7dbf66ca9fc3124754589927a5ead800f283cddd7cc7'),
  (3, '003_prices.sql', '0089ca8036faaa1fb197bd68f809ce4da4d3e6e40aa05cea6acaac36cffd158e'),
  (4, '004_months.sql', 'b17119890793e445cac42a15bc38c367a5d906c4d865148f973ab998d8fe1a6b');
