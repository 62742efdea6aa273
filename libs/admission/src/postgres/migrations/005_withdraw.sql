-- formerly sha256 202540efe6eecc1be8004de826a3680a233f74151c21cfbd0c6131361ff8aa2a
-- formerly sha256 e6d3ede35f15d7d4eb8c8d38b8fa5dde1cdea4f2217129951a0ad6d479f5e5ab
-- Money that leaves through the books (a refund). Usable credit must shrink before the books do. Otherwise a request
-- could be admitted on credit that is gone when it ends. One row per debit on its way, until a balance update of its
-- version or a newer one includes it. Then the balance is the books' own again.
CREATE TABLE withdrawal (
  tenant_id text COLLATE "C",
  -- The version of the books that includes the debit. Nobody else can create this version meanwhile, because billing
  -- holds the lock on the tenant's books.
  version bigint,
  nanos bigint NOT NULL CHECK (nanos > 0),
  PRIMARY KEY (tenant_id, version)
);
