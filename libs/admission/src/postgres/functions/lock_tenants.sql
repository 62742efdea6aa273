-- Locks the tenants' rows in ascending order, after creating missing ones (without a balance). They are created in the
-- same order before any row is locked, so a caller that holds a lock never waits for an insert.
CREATE OR REPLACE FUNCTION lock_tenants(p_tenant_ids text[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  v_ids text[] := array(SELECT DISTINCT u COLLATE "C" FROM unnest(p_tenant_ids) u ORDER BY 1);
BEGIN
  IF (SELECT count(*) FROM tenant WHERE tenant_id = ANY (v_ids)) < cardinality(v_ids) THEN
    INSERT INTO tenant (tenant_id) SELECT u FROM unnest(v_ids) WITH ORDINALITY AS w (u, n) ORDER BY n
      ON CONFLICT DO NOTHING;
  END IF;
  PERFORM FROM tenant WHERE tenant_id = ANY (v_ids) ORDER BY tenant_id FOR UPDATE;
END
$$;

-- Locks the tenants and returns the store's time (clock.sql), read under the locks. Assign it to a variable, or pass it
-- on: PERFORM takes twice as long as the rest for one tenant.
CREATE OR REPLACE FUNCTION locked_us(p_now_ms bigint, p_tenant_ids text[]) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
  -- One tenant, as most calls have: nothing to sort, and no lock is held if its row is missing.
  IF p_tenant_ids[1] = ALL (p_tenant_ids) THEN
    PERFORM FROM tenant WHERE tenant_id = p_tenant_ids[1] FOR UPDATE;
    IF FOUND THEN
      RETURN now_us(p_now_ms);
    END IF;
  END IF;
  PERFORM lock_tenants(p_tenant_ids);
  RETURN now_us(p_now_ms);
END
$$;
