-- Every price that tollgate.yaml had while a metering ran, so that an event which comes days after a change is rated by the price that it was admitted under. Rows are only added.
CREATE TABLE price_version (
  -- Public model id.
  model text COLLATE "C" NOT NULL,
  -- Of the model: chat or embedding.
  kind inference_kind NOT NULL,
  -- As gateways stamp it: a hash of the numbers.
  version text COLLATE "C" NOT NULL,
  input_femtos bigint NOT NULL,
  cached_input_femtos bigint NOT NULL,
  output_femtos bigint NOT NULL,
  request_nanos bigint NOT NULL,
  first_seen_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (model, kind, version)
);

-- Whose event it claims to be, where it has such ids: one that is recorded later is not open any more.
ALTER TABLE rejected_event
  ADD COLUMN event_id text COLLATE "C",
  ADD COLUMN tenant_id text COLLATE "C",
  -- That of an event which waits for its price to be known; else null.
  ADD COLUMN price_version text COLLATE "C",
  -- Set by a person: looked at, and nothing is to come of it.
  ADD COLUMN dismissed_at timestamptz;
UPDATE rejected_event SET event_id = substring(event FROM '"id":"(req_[0-9a-z]{26})"'), tenant_id = substring(event FROM '"tenantId":"(ten_[0-9a-z]{26})"');
CREATE INDEX rejected_event_unpriced ON rejected_event (price_version) WHERE price_version IS NOT NULL;
