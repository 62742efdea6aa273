-- formerly sha256 cb15614f52c9f142a0ea0e140ebaa745bc3811bee165f3f1e8d0d674c2326dd6
-- formerly sha256 e00316ed2d29090e157e2707672e8b96873721c1973670fde0610b07853c0f72
-- A tenant's holds are looked up by tenant: for the page of a tenant, and by reconcile. Neither column ever changes, so
-- a heartbeat stays a HOT update.
CREATE INDEX hold_tenant ON hold (tenant_id, id);
