-- The fields of a change without what people wrote about people. Ids, plans, profiles, scopes and times stay.
CREATE OR REPLACE FUNCTION without_names(fields jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE
  SET search_path = auth, pg_temp AS $$
  SELECT CASE WHEN fields IS NULL THEN NULL ELSE (
    SELECT coalesce(jsonb_object_agg(key,
      CASE WHEN key IN ('name', 'externalId', 'owner', 'tags') AND value <> 'null' THEN '"erased"' ELSE value END),
      '{}')
    FROM jsonb_each(fields)) END
$$;

-- A row of the audit log without personal data of the tenant: neither names nor its own people. The names of operators
-- stay.
CREATE OR REPLACE FUNCTION erased(line audit_log) RETURNS audit_log LANGUAGE plpgsql IMMUTABLE
  SET search_path = auth, pg_temp AS $$
BEGIN
  line.before := without_names(line.before);
  line.after := without_names(line.after);
  IF line.author_kind IN ('person', 'token') THEN
    line.author_name := NULL;
    line.address := NULL;
  END IF;
  RETURN line;
END $$;

-- Erases the name and the external id of a closed tenant, for good. The rows that belong to it follow, and are due
-- until all have lost theirs (013_erasure_due.sql). They are searched again in a minute, when all transactions have
-- ended that were under way, and may have added rows. True: the first time.
CREATE OR REPLACE FUNCTION begin_erasure(tenant_to_erase text) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = auth, pg_temp AS $$
BEGIN
  UPDATE tenant
     SET name = 'erased', external_id = NULL, erased_at = now(), erasure_due_at = now() + interval '1 minute'
   WHERE id = tenant_to_erase AND closed_at IS NOT NULL AND erased_at IS NULL;
  RETURN FOUND;
END $$;

-- Erases the personal data in the credentials of a tenant whose erasure is due: in the next `max_rows` ones after the
-- id `after_id`. A caller begins after '', commits, and goes on after the answer until it is null: a tenant has rows
-- without a bound, and a statement has a timeout. A complete erasure reads nothing again. Runs with the owner's
-- rights: the service may not write the fields of a revoked key in any other way.
CREATE OR REPLACE FUNCTION erase_credentials(tenant_to_erase text, after_id text, max_rows integer) RETURNS text
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = auth, pg_temp AS $$
DECLARE
  next_rows text[];
BEGIN
  IF NOT EXISTS (SELECT FROM tenant WHERE id = tenant_to_erase AND erasure_due_at IS NOT NULL) THEN
    RETURN NULL;
  END IF;
  next_rows := ARRAY(
    SELECT id FROM credential WHERE tenant_id = tenant_to_erase AND id > after_id ORDER BY id LIMIT max_rows);
  UPDATE credential SET name = 'erased', owner = NULL, tags = '{}'
   WHERE id = ANY (next_rows) AND (name <> 'erased' OR owner IS NOT NULL OR tags <> '{}');
  RETURN next_rows[max_rows];
END $$;

-- The same for the changes of the tenant in the audit log.
CREATE OR REPLACE FUNCTION erase_changes(tenant_to_erase text, after_id text, max_rows integer) RETURNS text
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = auth, pg_temp AS $$
DECLARE
  next_rows text[];
BEGIN
  IF NOT EXISTS (SELECT FROM tenant WHERE id = tenant_to_erase AND erasure_due_at IS NOT NULL) THEN
    RETURN NULL;
  END IF;
  next_rows := ARRAY(
    SELECT id FROM audit_log WHERE tenant_id = tenant_to_erase AND id > after_id ORDER BY id LIMIT max_rows);
  UPDATE audit_log AS line
     SET (author_name, address, before, after) = (
       SELECT e.author_name, e.address, e.before, e.after FROM erased(line) AS e)
   WHERE id = ANY (next_rows) AND line IS DISTINCT FROM erased(line);
  RETURN next_rows[max_rows];
END $$;

-- A row that is added after the erasure of its tenant has no names from the start: a closed tenant can still lose a
-- member. Runs with the owner's rights, because the service may not call `erased`.
CREATE OR REPLACE FUNCTION erase_new_row() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = auth, pg_temp AS $$
BEGIN
  IF EXISTS (SELECT FROM tenant WHERE id = NEW.tenant_id AND erased_at IS NOT NULL) THEN
    RETURN erased(NEW);
  END IF;
  RETURN NEW;
END $$;

-- The fields of a change without the e-mail address of a person. `own`: the person made the change, so they may also
-- say where and how it signed in.
CREATE OR REPLACE FUNCTION without_email(fields jsonb, email text, own boolean) RETURNS jsonb LANGUAGE sql IMMUTABLE
  SET search_path = auth, pg_temp AS $$
  SELECT CASE WHEN fields IS NULL THEN NULL ELSE (
    SELECT coalesce(jsonb_object_agg(key,
      CASE WHEN (key IN ('name', 'owner') AND lower(value #>> '{}') = email)
             OR (own AND key IN ('address', 'browser', 'passkey') AND value <> 'null')
           THEN '"erased"' ELSE value END), '{}')
    FROM jsonb_each(fields)) END
$$;

-- A row of the audit log without a person. Its id stays, as author and as what was changed.
CREATE OR REPLACE FUNCTION without_person(line audit_log, person text, email text) RETURNS audit_log
  LANGUAGE plpgsql IMMUTABLE SET search_path = auth, pg_temp AS $$
DECLARE
  own boolean := line.author_kind = 'person' AND line.author_id IS NOT DISTINCT FROM person;
BEGIN
  line.before := without_email(line.before, email, own);
  line.after := without_email(line.after, email, own);
  IF own THEN
    line.author_name := NULL;
    line.address := NULL;
  END IF;
  RETURN line;
END $$;

-- The tenants in which a person did something, or was a member. Nobody proves an address to join a tenant, so an
-- address counts as that of the person only there, and in rows of the person.
CREATE OR REPLACE FUNCTION tenants_of_person(person text) RETURNS text[] LANGUAGE sql STABLE
  SET search_path = auth, pg_temp AS $$
  SELECT ARRAY(
    SELECT tenant_id FROM audit_log WHERE author_kind = 'person' AND author_id = person
    UNION SELECT tenant_id FROM audit_log WHERE target = person)
$$;

-- Erases a person from some `max_rows` rows of the audit log, for good. A caller commits, and repeats it while it
-- answers true: a person has rows without a bound, and a statement has a timeout. Finds only rows that still name the
-- person, so a repeat goes on where the former one ended, and finds what was written meanwhile. `person_email` is in
-- lower case. Each search has an index, because the log may be large. Runs with the owner's rights, like erase_changes.
CREATE OR REPLACE FUNCTION erase_changes_of_person(person text, person_email text, max_rows integer) RETURNS boolean
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = auth, pg_temp AS $$
DECLARE
  tenants text[];
  -- Found before the UPDATE. If it searched for them, PostgreSQL would read the whole log after some ANALYZEs.
  next_rows text[] := ARRAY(
    SELECT id FROM audit_log
     WHERE author_kind = 'person' AND author_id = person AND (author_name IS NOT NULL OR address IS NOT NULL)
     LIMIT max_rows);
BEGIN
  IF cardinality(next_rows) < max_rows THEN
    tenants := tenants_of_person(person);
    next_rows := next_rows || ARRAY(
      -- Without a limit of its own, so that it uses its index.
      WITH named AS MATERIALIZED (
        SELECT id FROM audit_log
         WHERE ARRAY[
             lower(before ->> 'name'), lower(after ->> 'name'), lower(before ->> 'owner'), lower(after ->> 'owner')]
             @> ARRAY[person_email]
           AND (tenant_id = ANY (tenants) OR target = person OR author_id = person))
      SELECT id FROM named LIMIT max_rows);
  END IF;
  PERFORM set_config('tollgate.erased_person', person, true), set_config('tollgate.erased_email', person_email, true);
  UPDATE audit_log AS line
     SET (author_name, address, before, after) = (
       SELECT e.author_name, e.address, e.before, e.after FROM without_person(line, person, person_email) AS e)
   WHERE id = ANY (next_rows);
  PERFORM set_config('tollgate.erased_person', '', true), set_config('tollgate.erased_email', '', true);
  RETURN cardinality(next_rows) >= max_rows;
END $$;

-- The same for the owners of keys. The keys are found before they are locked, because a revocation waits for the lock.
CREATE OR REPLACE FUNCTION erase_owner(person text, person_email text, max_rows integer) RETURNS boolean
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = auth, pg_temp AS $$
DECLARE
  next_rows text[] := ARRAY(
    SELECT id FROM credential
     WHERE tenant_id = ANY (tenants_of_person(person)) AND lower(owner) = person_email LIMIT max_rows);
BEGIN
  UPDATE credential SET owner = NULL WHERE id = ANY (next_rows) AND lower(owner) = person_email;
  RETURN cardinality(next_rows) >= max_rows;
END $$;

-- A row of the audit log changes in two ways: it loses personal data after its tenant was erased, or a person who is
-- being erased. This binds the owner of the schema, too.
CREATE OR REPLACE FUNCTION refuse_all_but_erasure() RETURNS trigger LANGUAGE plpgsql
  SET search_path = auth, pg_temp AS $$
DECLARE
  person text := current_setting('tollgate.erased_person', true);
BEGIN
  IF NEW IS NOT DISTINCT FROM erased(OLD)
     AND EXISTS (SELECT FROM tenant WHERE id = OLD.tenant_id AND erased_at IS NOT NULL)
  THEN
    RETURN NEW;
  END IF;
  IF person <> ''
     AND NEW IS NOT DISTINCT FROM without_person(OLD, person, current_setting('tollgate.erased_email', true))
  THEN
    RETURN NEW;
  END IF;
  RAISE insufficient_privilege USING MESSAGE = 'audit_log is append-only: UPDATE refused';
END $$;

-- A tenant is closed and erased for good.
CREATE OR REPLACE FUNCTION refuse_reopening() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE insufficient_privilege USING MESSAGE = format('tenant %s: what is closed stays closed', OLD.id);
END $$;
