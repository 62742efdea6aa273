-- Takes the name and the remote address of a person from the changes that it made, for good. Runs with the owner's
-- rights: the service may not write the audit log in any other way. The id stays. A repeat finds what was written
-- meanwhile.
CREATE OR REPLACE FUNCTION erase_person(person text) RETURNS void LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = billing, pg_temp AS $$
BEGIN
  PERFORM set_config('tollgate.erased_person', person, true);
  UPDATE audit_log SET author_name = NULL, address = NULL
   WHERE author_kind = 'person' AND author_id = person AND (author_name IS NOT NULL OR address IS NOT NULL);
  PERFORM set_config('tollgate.erased_person', '', true);
END $$;

-- A row of the audit log changes in one way: it loses a person who is being erased. This binds the owner of the schema,
-- too.
CREATE OR REPLACE FUNCTION refuse_all_but_erasure() RETURNS trigger LANGUAGE plpgsql
  SET search_path = billing, pg_temp AS $$
DECLARE
  line audit_log := OLD;
BEGIN
  line.author_name := NULL;
  line.address := NULL;
  IF NEW IS NOT DISTINCT FROM line AND OLD.author_kind = 'person'
     AND OLD.author_id = nullif(current_setting('tollgate.erased_person', true), '')
  THEN
    RETURN NEW;
  END IF;
  RAISE insufficient_privilege USING MESSAGE = 'audit_log is append-only: UPDATE refused';
END $$;
