-- formerly sha256 e00316ed2d29090e157e2707672e8b96873721c1973670fde0610b07853c0f72
-- A tenant's holds are looked up by it: for the page of a tenant, and by reconcile, tenant by tenant. Neither column
-- ever changes, so a sign of life stays a HOT update.
CREATE INDEX hold_tenant ON hold (tenant_id, id);
