-- Makes three roles for each service with a schema. Safe to repeat: it replaces passwords, and updates the installation
-- of an older version.
--
--   billing_owner     owns the schema `billing`. Only migrations (--migrate) log in as this role.
--   tollgate_billing  has the rights that the service needs (apps/billing/src/migrations/rights.sql). It cannot log in.
--   billing           is the login of the service. It is only a member of tollgate_billing.
--
-- Run it with psql as a superuser, or as a user who may create roles and owns the database. All passwords are files in
-- /run/secrets, also those that do not change.
\set ON_ERROR_STOP on
BEGIN;
-- So that a user who is no superuser may act for the new roles.
SET LOCAL createrole_self_grant = 'set, inherit';

SELECT format('CREATE ROLE %I NOLOGIN', 'tollgate_' || name)
FROM unnest(ARRAY['auth', 'metering', 'billing', 'console']) AS name
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'tollgate_' || name) \gexec
SELECT format('CREATE ROLE %I LOGIN', name)
FROM unnest(ARRAY['auth', 'metering', 'billing', 'console', 'auth_owner', 'metering_owner', 'billing_owner',
                  'console_owner']) AS name
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name) \gexec

\set auth_password `cat /run/secrets/auth-database-password`
\set metering_password `cat /run/secrets/metering-database-password`
\set billing_password `cat /run/secrets/billing-database-password`
\set console_password `cat /run/secrets/console-database-password`
\set auth_owner_password `cat /run/secrets/auth-owner-database-password`
\set metering_owner_password `cat /run/secrets/metering-owner-database-password`
\set billing_owner_password `cat /run/secrets/billing-owner-database-password`
\set console_owner_password `cat /run/secrets/console-owner-database-password`
-- PostgreSQL keeps the texts of statements: in pg_stat_statements, and in its log if they fail or `log_statement` is
-- `ddl`. So the passwords are in a setting of this transaction, and the statements that set them do not have them.
SELECT set_config('tollgate.passwords', json_object(ARRAY[
  'auth', :'auth_password', 'metering', :'metering_password', 'billing', :'billing_password',
  'console', :'console_password', 'auth_owner', :'auth_owner_password', 'metering_owner', :'metering_owner_password',
  'billing_owner', :'billing_owner_password', 'console_owner', :'console_owner_password'])::text, true) \g /dev/null
-- psql goes on without a file, and an empty password would lock a login out.
SELECT string_agg(replace(name, '_', '-') || '-database-password', ', ') AS lacking, count(*) > 0 AS is_lacking
FROM json_each_text(current_setting('tollgate.passwords')::json) AS given (name, password)
WHERE password = '' \gset
\if :is_lacking
  \warn 'Nothing was changed. These files in /run/secrets are missing or empty:' :lacking
  DO $$ BEGIN RAISE EXCEPTION 'a password is missing'; END $$;
\endif
DO $$
DECLARE
  login text;
  secret text;
BEGIN
  FOR login, secret IN SELECT * FROM json_each_text(current_setting('tollgate.passwords')::json) LOOP
    EXECUTE format('ALTER ROLE %I PASSWORD %L', login, secret);
  END LOOP;
EXCEPTION WHEN OTHERS THEN
  -- The error itself would show the statement.
  RAISE EXCEPTION 'the password of % could not be set: %', login, SQLERRM;
END $$;
-- Enough for the pools of 16 replicas of each service (docker-compose.yml) and eight starts at once. Owners need
-- connections for a job and a person. So no service can use up the connections of another.
ALTER ROLE auth CONNECTION LIMIT 88;
ALTER ROLE metering CONNECTION LIMIT 152;
ALTER ROLE billing CONNECTION LIMIT 168;
ALTER ROLE console CONNECTION LIMIT 88;
ALTER ROLE auth_owner CONNECTION LIMIT 3;
ALTER ROLE metering_owner CONNECTION LIMIT 3;
ALTER ROLE billing_owner CONNECTION LIMIT 3;
ALTER ROLE console_owner CONNECTION LIMIT 3;

-- In older versions the services' logins owned their schemas. The connections of a running service are closed, because
-- their locks and these could wait for each other. The service connects again.
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND usename IN ('auth', 'metering', 'billing')
  AND EXISTS (SELECT FROM pg_namespace WHERE nspowner = usesysid) \g /dev/null
REASSIGN OWNED BY auth TO auth_owner;
REASSIGN OWNED BY metering TO metering_owner;
REASSIGN OWNED BY billing TO billing_owner;
CREATE SCHEMA IF NOT EXISTS auth AUTHORIZATION auth_owner;
CREATE SCHEMA IF NOT EXISTS metering AUTHORIZATION metering_owner;
CREATE SCHEMA IF NOT EXISTS billing AUTHORIZATION billing_owner;
CREATE SCHEMA IF NOT EXISTS console AUTHORIZATION console_owner;

-- A login is a member of one role. Its only own right is to connect.
GRANT tollgate_auth TO auth;
GRANT tollgate_metering TO metering;
GRANT tollgate_billing TO billing;
GRANT tollgate_console TO console;
\set logins 'auth, metering, billing, console, auth_owner, metering_owner, billing_owner, console_owner'
SELECT format('REVOKE ALL ON DATABASE %I FROM PUBLIC, %s', current_database(), :'logins') \gexec
SELECT format('GRANT CONNECT ON DATABASE %I TO %s', current_database(), :'logins') \gexec
REVOKE ALL ON SCHEMA public FROM PUBLIC;
COMMIT;
