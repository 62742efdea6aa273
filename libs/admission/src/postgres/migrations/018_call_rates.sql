-- The request limit of the management API: when the bucket of a token is full again. Nothing depends on a row that a
-- crash loses.
CREATE UNLOGGED TABLE call_rate (
  tenant_id text COLLATE "C" NOT NULL,
  token_id text COLLATE "C" NOT NULL,
  full_at_us bigint NOT NULL,
  PRIMARY KEY (tenant_id, token_id)
) WITH (fillfactor = 50);
