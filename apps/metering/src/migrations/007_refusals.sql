-- Requests that no usage event has, because they were refused or failed before any output. Gateways report them by hour
-- (docs/decisions/0021-refusals-are-counted.md).
CREATE TABLE refusal_hour (
  tenant_id text COLLATE "C" NOT NULL,
  hour timestamptz NOT NULL,
  key_id text COLLATE "C" NOT NULL,
  -- An error code of the inference API.
  code text COLLATE "C" NOT NULL,
  -- The gateway process. Its count only grows, so that a repeated report changes nothing.
  source text COLLATE "C" NOT NULL,
  requests bigint NOT NULL,
  PRIMARY KEY (tenant_id, hour, key_id, code, source)
) WITH (fillfactor = 70);
-- Serves the removal of old hours.
CREATE INDEX refusal_hour_hour ON refusal_hour (hour);
