-- formerly sha256 0089ca8036faaa1fb197bd68f809ce4da4d3e6e40aa05cea6acaac36cffd158e
-- Every price that tollgate.yaml had while metering ran. So an event that arrives days after a change is rated at the
-- price of its admission. Rows are only added.
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

-- The ids that the event claims, if it has any. Once the event with this id is recorded, this row is no longer open.
ALTER TABLE rejected_event
  ADD COLUMN event_id text COLLATE "C",
  ADD COLUMN tenant_id text COLLATE "C",
  -- Of an event that waits until its price is known; otherwise null.
  ADD COLUMN price_version text COLLATE "C",
  -- Set when an operator has closed it.
  ADD COLUMN dismissed_at timestamptz;
UPDATE rejected_event
  SET event_id = substring(event FROM '"id":"(req_[0-9a-z]{26})"'),
    tenant_id = substring(event FROM '"tenantId":"(ten_[0-9a-z]{26})"');
CREATE INDEX rejected_event_unpriced ON rejected_event (price_version) WHERE price_version IS NOT NULL;
