-- formerly sha256 822aebc56ef26c34cd6e980bc18177e4582b8e6f1809a886ea20550ed4c4b89c
-- Its triggers stand in ../functions now. By rights: the service takes on the role `tollgate_billing`, which cannot
-- change or delete a line of the journal, nor switch off a trigger. What it may do today is in rights.sql.

-- A role belongs to the server, not to the database: it may be there already, or be made by another database's
-- migration at this moment, or this user may not make roles: then the triggers alone stand, and the service says so
-- when it starts.
DO $$
BEGIN
  CREATE ROLE tollgate_billing NOLOGIN;
EXCEPTION
  WHEN duplicate_object OR unique_violation THEN NULL;
  WHEN insufficient_privilege THEN RAISE NOTICE 'may not create the role tollgate_billing: the journal is append-only by triggers alone';
END $$;

DO $$
BEGIN
  -- A superuser may take on any role; anyone else must be granted it, also who made it.
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
