-- Idempotency-Keys in use (../functions/claims.sql). A change of a tenant's claims first locks the tenant's row, as for
-- its holds.
CREATE TABLE claim (
  tenant_id text COLLATE "C" NOT NULL,
  id text COLLATE "C" NOT NULL,
  -- The hold that was made with it. While that hold is pending, the claim is taken.
  request_id text COLLATE "C" NOT NULL,
  fingerprint text NOT NULL,
  created_ms bigint NOT NULL,
  -- Its request was settled with it. Without this, a claim whose hold is not pending any more is free.
  settled boolean NOT NULL DEFAULT false,
  -- Sealed by the gateway. Null: not kept.
  answer text,
  PRIMARY KEY (tenant_id, id)
);
-- Encrypted text cannot be compressed.
ALTER TABLE claim ALTER COLUMN answer SET STORAGE EXTERNAL;
CREATE INDEX claim_of_tenant ON claim (tenant_id, created_ms, id);
CREATE INDEX claim_with_answer ON claim (tenant_id, created_ms, id) WHERE answer IS NOT NULL;
CREATE INDEX claim_by_age ON claim (created_ms);

-- Sums over the rows of a tenant, for the bounds.
CREATE TABLE claim_sum (
  tenant_id text COLLATE "C" PRIMARY KEY,
  claims bigint NOT NULL DEFAULT 0,
  answer_chars bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);
