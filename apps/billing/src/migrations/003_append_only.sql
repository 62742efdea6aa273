-- Append-only twice: by triggers, which bind everyone, and by rights: the service takes on the role `tollgate_billing`, which cannot
-- change or delete a line of the journal, nor switch off a trigger.

CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE insufficient_privilege USING MESSAGE = format('%I is append-only: %s refused; correct by a further entry', TG_TABLE_NAME, TG_OP);
END $$;

DO $$
DECLARE
  name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['charge', 'journal_entry', 'posting', 'coverage'] LOOP
    EXECUTE format('CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON %I FOR EACH ROW EXECUTE FUNCTION refuse_change()', name);
    EXECUTE format('CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON %I FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()', name);
  END LOOP;
END $$;

-- What was set aside stays as it came; that it came again is counted.
CREATE TRIGGER append_only BEFORE DELETE ON rejected_charge FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON rejected_charge FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER only_count_up BEFORE UPDATE ON rejected_charge FOR EACH ROW
  WHEN ((OLD.digest, OLD.reason, OLD.data, OLD.first_at) IS DISTINCT FROM (NEW.digest, NEW.reason, NEW.data, NEW.first_at)
    OR NEW.times <= OLD.times OR NEW.last_at < OLD.last_at)
  EXECUTE FUNCTION refuse_change();

-- A role belongs to the server, not to the database: it may be there already, or be made by another database's migration at this moment,
-- or this user may not make roles: then the triggers alone stand, and the service says so when it starts.
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
