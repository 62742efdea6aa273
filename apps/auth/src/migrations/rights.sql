-- All rights of the service in its schema. Every --migrate applies this file as the owner when it has changed
-- (libs/postgres/src/rights.ts). docs/rights-postgres.md has the whole table, and what an attacker with the login can
-- still do; a test compares it.
REVOKE ALL ON SCHEMA auth FROM PUBLIC, tollgate_auth;
REVOKE ALL ON ALL TABLES IN SCHEMA auth FROM PUBLIC, tollgate_auth;
REVOKE ALL ON ALL ROUTINES IN SCHEMA auth FROM PUBLIC, tollgate_auth;
GRANT USAGE ON SCHEMA auth TO tollgate_auth;
-- The service may read a new table at once. Rights to write are granted here.
GRANT SELECT ON ALL TABLES IN SCHEMA auth TO tollgate_auth;
ALTER DEFAULT PRIVILEGES IN SCHEMA auth GRANT SELECT ON TABLES TO tollgate_auth;

-- Tenants and credentials are never deleted, and a credential's tenant, hash and scopes never change.
GRANT INSERT, UPDATE (status, status_version, name, plan, external_id, closed_at, erasure_due_at) ON tenant
  TO tollgate_auth;
GRANT INSERT,
  UPDATE (version, projected_version, revoked_at, last_used_at, name, profile, expires_at, owner, tags, models, last4,
    rotated_at, former_until)
  ON credential TO tollgate_auth;
-- A secret is never changed or deleted. The next one ends those before it.
GRANT INSERT ON credential_rotation TO tollgate_auth;

-- The same holds for operator tokens.
GRANT INSERT, UPDATE (revoked_at, last_used_at) ON operator_token TO tollgate_auth;

GRANT INSERT, DELETE ON drained_backend TO tollgate_auth;

GRANT INSERT ON audit_log TO tollgate_auth;
-- Erases personal data of a closed tenant, with the owner's rights. Previous version: erase_tenant.
GRANT EXECUTE ON FUNCTION begin_erasure(text), erase_credentials(text, text, integer),
  erase_changes(text, text, integer), erase_tenant(text) TO tollgate_auth;
-- Erases a person of the console from the audit log and the owners of keys, with the owner's rights. Previous version:
-- erase_person.
GRANT EXECUTE ON FUNCTION erase_changes_of_person(text, text, integer), erase_owner(text, text, integer),
  erase_person(text, text) TO tollgate_auth;
GRANT INSERT, UPDATE, DELETE ON outbox TO tollgate_auth;
GRANT INSERT ON outbox_refused TO tollgate_auth;
