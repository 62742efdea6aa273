-- A row of the audit log without the tenant's own people. The names of operators stay. So do `before` and `after`: of
-- texts, they have only the reference, source and reason of an entry, which are in the hash chain.
CREATE OR REPLACE FUNCTION erased(line audit_log) RETURNS audit_log LANGUAGE plpgsql IMMUTABLE
  SET search_path = billing, pg_temp AS $$
BEGIN
  IF line.author_kind IN ('person', 'token') THEN
    line.author_name := NULL;
    line.address := NULL;
  END IF;
  RETURN line;
END $$;

-- Takes the names and remote addresses of a tenant's people from the changes of the tenant, for good: from the next
-- `max_rows` ones after the row `after_id`. A caller begins after '', commits, and goes on after the answer until it is
-- null: a tenant has changes without a bound, and a statement has a timeout. Rows that name nobody are skipped, so a
-- repeat goes on where the former one ended, and finds what was written meanwhile. Runs with the owner's rights: the
-- service may not write the audit log in any other way. The ids stay.
CREATE OR REPLACE FUNCTION erase_changes(tenant_to_erase text, after_id text, max_rows integer) RETURNS text
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = billing, pg_temp AS $$
DECLARE
  rows_to_erase text[];
BEGIN
  INSERT INTO erased_tenant (tenant_id) VALUES (tenant_to_erase) ON CONFLICT DO NOTHING;
  rows_to_erase := ARRAY(
    SELECT id FROM audit_log
     WHERE tenant_id = tenant_to_erase AND id > after_id
       AND author_kind IN ('person', 'token') AND (author_name IS NOT NULL OR address IS NOT NULL)
     ORDER BY id LIMIT max_rows);
  UPDATE audit_log AS line
     SET (author_name, address) = (SELECT e.author_name, e.address FROM erased(line) AS e)
   WHERE id = ANY (rows_to_erase) AND line IS DISTINCT FROM erased(line);
  RETURN rows_to_erase[max_rows];
END $$;

-- A row that is added after the erasure of its tenant has no names from the start: credit can still be written off, and
-- budgets can be set. Runs with the owner's rights, because the service may not call `erased`.
CREATE OR REPLACE FUNCTION erase_new_row() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = billing, pg_temp AS $$
BEGIN
  IF EXISTS (SELECT FROM erased_tenant WHERE tenant_id = NEW.tenant_id) THEN
    RETURN erased(NEW);
  END IF;
  RETURN NEW;
END $$;

-- Takes the name and the remote address of a person from some `max_rows` of the changes that it made, for good. A caller
-- commits, and repeats it while it answers true: a person has changes without a bound, and a statement has a timeout.
-- Finds only rows that still name the person, so a repeat goes on where the former one ended, and finds what was written
-- meanwhile. Runs with the owner's rights, like erase_changes. The id stays.
CREATE OR REPLACE FUNCTION erase_changes_of_person(person text, max_rows integer) RETURNS boolean
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = billing, pg_temp AS $$
DECLARE
  next_rows text[] := ARRAY(
    SELECT id FROM audit_log
     WHERE author_kind = 'person' AND author_id = person AND (author_name IS NOT NULL OR address IS NOT NULL)
     LIMIT max_rows);
BEGIN
  PERFORM set_config('tollgate.erased_person', person, true);
  UPDATE audit_log SET author_name = NULL, address = NULL WHERE id = ANY (next_rows);
  PERFORM set_config('tollgate.erased_person', '', true);
  RETURN cardinality(next_rows) >= max_rows;
END $$;

-- A row of the audit log changes in two ways: it loses the people of a tenant that is erased, or a person who is being
-- erased. This binds the owner of the schema, too.
CREATE OR REPLACE FUNCTION refuse_all_but_erasure() RETURNS trigger LANGUAGE plpgsql
  SET search_path = billing, pg_temp AS $$
DECLARE
  line audit_log := OLD;
BEGIN
  IF NEW IS NOT DISTINCT FROM erased(OLD) AND EXISTS (SELECT FROM erased_tenant WHERE tenant_id = OLD.tenant_id) THEN
    RETURN NEW;
  END IF;
  line.author_name := NULL;
  line.address := NULL;
  IF NEW IS NOT DISTINCT FROM line AND OLD.author_kind = 'person'
     AND OLD.author_id = nullif(current_setting('tollgate.erased_person', true), '')
  THEN
    RETURN NEW;
  END IF;
  RAISE insufficient_privilege USING MESSAGE = 'audit_log is append-only: UPDATE refused';
END $$;
