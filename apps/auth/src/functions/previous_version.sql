-- For processes of the previous version, which run beside this one while it is rolled out. The next version drops it.
-- In force: begin_erasure, erase_credentials and erase_changes in erasure.sql.
CREATE OR REPLACE FUNCTION erase_tenant(tenant_to_erase text) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = auth, pg_temp AS $$
DECLARE
  first boolean;
BEGIN
  UPDATE tenant
     SET name = 'erased', external_id = NULL, erased_at = now(), erasure_due_at = now() + interval '1 minute'
   WHERE id = tenant_to_erase AND closed_at IS NOT NULL AND erased_at IS NULL;
  first := FOUND;
  IF NOT first AND NOT EXISTS (SELECT FROM tenant WHERE id = tenant_to_erase AND erasure_due_at IS NOT NULL) THEN
    RETURN false;
  END IF;
  UPDATE credential SET name = 'erased', owner = NULL, tags = '{}'
   WHERE tenant_id = tenant_to_erase AND (name <> 'erased' OR owner IS NOT NULL OR tags <> '{}');
  UPDATE audit_log AS line
     SET (author_name, address, before, after) = (
       SELECT e.author_name, e.address, e.before, e.after FROM erased(line) AS e)
   WHERE tenant_id = tenant_to_erase AND line IS DISTINCT FROM erased(line);
  RETURN first;
END $$;

-- In force: erase_changes_of_person and erase_owner in erasure.sql. The keys come last, because a revocation waits for
-- their locks.
CREATE OR REPLACE FUNCTION erase_person(person text, person_email text) RETURNS void LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = auth, pg_temp AS $$
BEGIN
  WHILE erase_changes_of_person(person, person_email, 10000) LOOP END LOOP;
  WHILE erase_owner(person, person_email, 10000) LOOP END LOOP;
END $$;
