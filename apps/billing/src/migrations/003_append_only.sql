-- formerly sha256 0d0280713001f87f2cb87d4ba0ccf46ed49ecfbdcd2c3062eb67d1f2e090a623
-- formerly sha256 822aebc56ef26c34cd6e980bc18177e4582b8e6f1809a886ea20550ed4c4b89c
-- Its triggers stand in ../functions now. The service takes on the role `tollgate_billing`, which has no right to
-- change or delete a line of the journal, or to switch off a trigger. Its present rights are in rights.sql.

-- A role belongs to the server, not to the database. So it may exist already, or another database's migration may
-- create it at this moment. If this user may not create roles, only the triggers protect the journal, and the service
-- says so when it starts.
DO $$
BEGIN
  CREATE ROLE tollgate_billing NOLOGIN;
EXCEPTION
  WHEN duplicate_object OR unique_violation THEN NULL;
  WHEN insufficient_privilege THEN
    RAISE NOTICE 'may not create the role tollgate_billing: the journal is append-only by triggers alone';
END $$;

DO $$
BEGIN
  -- A superuser may take on any role. Anyone else needs a grant, even the creator of the role.
  IF NOT (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
    EXECUTE format('GRANT tollgate_billing TO %I', current_user);
  END IF;
EXCEPTION
  WHEN undefined_object OR insufficient_privilege OR unique_violation THEN NULL;
END $$;

DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'tollgate_billing') THEN
    GRANT USAGE ON SCHEMA billing TO tollgate_billing;
    GRANT SELECT ON ALL TABLES IN SCHEMA billing TO tollgate_billing;
    GRANT INSERT ON charge, rejected_charge, journal_entry, posting, coverage TO tollgate_billing;
    GRANT UPDATE (times, last_at) ON rejected_charge TO tollgate_billing;
    GRANT INSERT, UPDATE ON tenant_books, tenant_month TO tollgate_billing;
    GRANT INSERT ON outbox_refused TO tollgate_billing;
    GRANT INSERT, UPDATE, DELETE ON outbox TO tollgate_billing;
  END IF;
END $$;
