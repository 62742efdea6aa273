-- formerly sha256 e6d3ede35f15d7d4eb8c8d38b8fa5dde1cdea4f2217129951a0ad6d479f5e5ab
-- Money that leaves by the books (a refund). What requests can use must shrink before the books do, or a request could
-- be admitted on credit that is gone by the time at which it ends. One row a debit on its way, until news of its
-- version or a newer one has it inside: then the balance is the books' own again.
CREATE TABLE withdrawal (
  tenant_id text COLLATE "C",
  -- The version that the books have with the debit inside: nobody else can make this version meanwhile, as billing
  -- holds the tenant's books locked.
  version bigint,
  nanos bigint NOT NULL CHECK (nanos > 0),
  PRIMARY KEY (tenant_id, version)
);
