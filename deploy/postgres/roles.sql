-- A role for each service, which owns its schema and nothing else. Safe to repeat: a new password takes the place of the old one.
\set ON_ERROR_STOP on

-- What billing takes on while it serves (its migrations say which rights it has): the journal's lines cannot be changed or deleted, not even by the service.
SELECT 'CREATE ROLE tollgate_billing NOLOGIN' WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'tollgate_billing') \gexec

SELECT format('CREATE ROLE %I LOGIN', name) FROM unnest(ARRAY['auth', 'metering', 'billing']) AS name
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name) \gexec

\set auth_password `cat /run/secrets/auth-database-password`
\set metering_password `cat /run/secrets/metering-database-password`
\set billing_password `cat /run/secrets/billing-database-password`
ALTER ROLE auth PASSWORD :'auth_password';
ALTER ROLE metering PASSWORD :'metering_password';
ALTER ROLE billing PASSWORD :'billing_password';

GRANT tollgate_billing TO billing;
-- To make the schema of their own.
GRANT CREATE ON DATABASE tollgate TO auth, metering, billing;
REVOKE ALL ON SCHEMA public FROM PUBLIC;
