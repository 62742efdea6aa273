-- All rights of the service in its schema. Every --migrate applies this file as the owner when it has changed
-- (libs/postgres/src/rights.ts). docs/rights-postgres.md has the whole table; a test compares it.
REVOKE ALL ON SCHEMA console FROM PUBLIC, tollgate_console;
REVOKE ALL ON ALL TABLES IN SCHEMA console FROM PUBLIC, tollgate_console;
REVOKE ALL ON ALL ROUTINES IN SCHEMA console FROM PUBLIC, tollgate_console;
GRANT USAGE ON SCHEMA console TO tollgate_console;
GRANT SELECT ON ALL TABLES IN SCHEMA console TO tollgate_console;
ALTER DEFAULT PRIVILEGES IN SCHEMA console GRANT SELECT ON TABLES TO tollgate_console;

-- What better-auth writes.
-- The console itself erases people.
GRANT INSERT, UPDATE, DELETE ON "user" TO tollgate_console;
GRANT INSERT, UPDATE, DELETE ON "session", "account", "verification", "twoFactor", "passkey", "rateLimit"
  TO tollgate_console;

-- Operators come from links, and the operator API takes them away.
GRANT INSERT, DELETE ON operator TO tollgate_console;
-- Each sign-in by OpenID Connect sets anew who operates by a group of the provider.
GRANT INSERT, DELETE ON provider_operator TO tollgate_console;
-- Once, the first issuer of OpenID Connect.
GRANT INSERT ON first_issuer TO tollgate_console;
GRANT INSERT, UPDATE (role), DELETE ON membership TO tollgate_console;
GRANT INSERT, UPDATE (used_at, mailed), DELETE ON invitation TO tollgate_console;
GRANT INSERT, DELETE ON recovery TO tollgate_console;
-- Deleted when auth and billing have forgotten the person.
GRANT INSERT, UPDATE (author, due_at), DELETE ON erasure TO tollgate_console;
