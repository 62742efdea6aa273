-- For processes of the previous version, which run beside this one while it is rolled out. The next version drops it.
-- In force: erase_changes in erasure.sql.
CREATE OR REPLACE FUNCTION erase_tenant(tenant_to_erase text) RETURNS void LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = billing, pg_temp AS $$
BEGIN
  INSERT INTO erased_tenant (tenant_id) VALUES (tenant_to_erase) ON CONFLICT DO NOTHING;
  UPDATE audit_log AS line
     SET (author_name, address) = (SELECT e.author_name, e.address FROM erased(line) AS e)
   WHERE tenant_id = tenant_to_erase AND line IS DISTINCT FROM erased(line);
END $$;

-- In force: erase_changes_of_person in erasure.sql.
CREATE OR REPLACE FUNCTION erase_person(person text) RETURNS void LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = billing, pg_temp AS $$
BEGIN
  WHILE erase_changes_of_person(person, 10000) LOOP END LOOP;
END $$;
