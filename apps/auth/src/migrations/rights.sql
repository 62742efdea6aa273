-- What the service may do in its schema: nothing but this. Applied by every --migrate that finds it changed, as the
-- owner (libs/postgres/src/rights.ts); the whole table, with what is left to whoever has the login:
-- docs/rights-postgres.md, which a test compares.
REVOKE ALL ON SCHEMA auth FROM PUBLIC, tollgate_auth;
REVOKE ALL ON ALL TABLES IN SCHEMA auth FROM PUBLIC, tollgate_auth;
REVOKE ALL ON ALL ROUTINES IN SCHEMA auth FROM PUBLIC, tollgate_auth;
GRANT USAGE ON SCHEMA auth TO tollgate_auth;
-- A later table can be read; who may write it is said here.
GRANT SELECT ON ALL TABLES IN SCHEMA auth TO tollgate_auth;
ALTER DEFAULT PRIVILEGES IN SCHEMA auth GRANT SELECT ON TABLES TO tollgate_auth;

-- Tenants and credentials are never deleted, and a credential's tenant, hash and scopes never change.
GRANT INSERT, UPDATE (status, status_version) ON tenant TO tollgate_auth;
GRANT INSERT, UPDATE (version, projected_version, revoked_at, last_used_at) ON credential TO tollgate_auth;

GRANT INSERT, UPDATE, DELETE ON outbox TO tollgate_auth;
GRANT INSERT ON outbox_refused TO tollgate_auth;
