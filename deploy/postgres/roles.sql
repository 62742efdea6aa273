-- Three roles for each service with a schema. Safe to repeat: a new password takes the place of the old one, and what
-- an older version set up differently is moved over.
--
--   billing_owner     owns the schema `billing`. Migrations sign in as it (--migrate), and nothing else.
--   tollgate_billing  has the rights that the service needs (apps/billing/src/migrations/rights.sql). Nobody signs in
--                     as it.
--   billing           what the service signs in as: a member of tollgate_billing, and nothing else.
--
-- psql as a superuser, or as a user who may make roles and owns the database; passwords are files in /run/secrets.
\set ON_ERROR_STOP on
BEGIN;
-- Who is no superuser may act for the roles that it makes here.
SET LOCAL createrole_self_grant = 'set, inherit';

SELECT format('CREATE ROLE %I NOLOGIN', 'tollgate_' || name) FROM unnest(ARRAY['auth', 'metering', 'billing']) AS name
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'tollgate_' || name) \gexec
SELECT format('CREATE ROLE %I LOGIN', name) FROM unnest(ARRAY['auth_owner', 'metering_owner', 'billing_owner', 'auth', 'metering', 'billing']) AS name
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name) \gexec

\set auth_password `cat /run/secrets/auth-database-password`
\set metering_password `cat /run/secrets/metering-database-password`
\set billing_password `cat /run/secrets/billing-database-password`
\set auth_owner_password `cat /run/secrets/auth-owner-database-password`
\set metering_owner_password `cat /run/secrets/metering-owner-database-password`
\set billing_owner_password `cat /run/secrets/billing-owner-database-password`
-- The pools of 16 of each (docker-compose.yml), and eight starts at once; of owners, a job and a person. None can take
-- the connections of another.
ALTER ROLE auth PASSWORD :'auth_password' CONNECTION LIMIT 88;
ALTER ROLE metering PASSWORD :'metering_password' CONNECTION LIMIT 152;
ALTER ROLE billing PASSWORD :'billing_password' CONNECTION LIMIT 168;
ALTER ROLE auth_owner PASSWORD :'auth_owner_password' CONNECTION LIMIT 3;
ALTER ROLE metering_owner PASSWORD :'metering_owner_password' CONNECTION LIMIT 3;
ALTER ROLE billing_owner PASSWORD :'billing_owner_password' CONNECTION LIMIT 3;

-- Before, the services' logins owned their schemas. A service that runs meanwhile is cut off (it connects again): its
-- locks and these could wait for each other.
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND usename IN ('auth', 'metering', 'billing') AND EXISTS (SELECT FROM pg_namespace WHERE nspowner = usesysid) \g /dev/null
REASSIGN OWNED BY auth TO auth_owner;
REASSIGN OWNED BY metering TO metering_owner;
REASSIGN OWNED BY billing TO billing_owner;
CREATE SCHEMA IF NOT EXISTS auth AUTHORIZATION auth_owner;
CREATE SCHEMA IF NOT EXISTS metering AUTHORIZATION metering_owner;
CREATE SCHEMA IF NOT EXISTS billing AUTHORIZATION billing_owner;

-- A login is a member of one role, and has no right of its own but to connect.
GRANT tollgate_auth TO auth;
GRANT tollgate_metering TO metering;
GRANT tollgate_billing TO billing;
SELECT format('REVOKE ALL ON DATABASE %I FROM PUBLIC, auth, metering, billing, auth_owner, metering_owner, billing_owner', current_database()) \gexec
SELECT format('GRANT CONNECT ON DATABASE %I TO auth, metering, billing, auth_owner, metering_owner, billing_owner', current_database()) \gexec
REVOKE ALL ON SCHEMA public FROM PUBLIC;
COMMIT;
