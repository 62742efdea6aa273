-- The fields of a change without what people wrote about people. Ids, plans, profiles, scopes and times stay.
CREATE OR REPLACE FUNCTION without_names(fields jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE
  SET search_path = auth, pg_temp AS $$
  SELECT CASE WHEN fields IS NULL THEN NULL ELSE (
    SELECT coalesce(jsonb_object_agg(key,
      CASE WHEN key IN ('name', 'externalId', 'owner', 'tags') AND value <> 'null' THEN '"erased"' ELSE value END), '{}')
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

-- Erases the personal data of a closed tenant, for good. Runs with the owner's rights: the service may write neither
-- the audit log nor the fields of a revoked key in any other way. False: it was erased before.
CREATE OR REPLACE FUNCTION erase_tenant(tenant_to_erase text) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = auth, pg_temp AS $$
BEGIN
  UPDATE tenant SET name = 'erased', external_id = NULL, erased_at = now()
   WHERE id = tenant_to_erase AND closed_at IS NOT NULL AND erased_at IS NULL;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  UPDATE credential SET name = 'erased', owner = NULL, tags = '{}' WHERE tenant_id = tenant_to_erase;
  UPDATE audit_log AS line
     SET (author_name, address, before, after) = (
       SELECT e.author_name, e.address, e.before, e.after FROM erased(line) AS e)
   WHERE tenant_id = tenant_to_erase;
  RETURN true;
END $$;

-- A row of the audit log changes in one way: it loses personal data, after its tenant was erased. This binds the owner
-- of the schema, too.
CREATE OR REPLACE FUNCTION refuse_all_but_erasure() RETURNS trigger LANGUAGE plpgsql
  SET search_path = auth, pg_temp AS $$
BEGIN
  IF NEW IS NOT DISTINCT FROM erased(OLD)
     AND EXISTS (SELECT FROM tenant WHERE id = OLD.tenant_id AND erased_at IS NOT NULL)
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
