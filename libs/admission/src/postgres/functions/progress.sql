-- rule 17: heartbeat
-- Renews the deadlines of the given holds that are pending, and records what was delivered. Returns the positions of
-- those holds.
CREATE OR REPLACE FUNCTION progress(
  p_now_ms bigint, p_lease_ms bigint, p_id text[], p_tenant_id text[], p_delivered text[])
RETURNS SETOF bigint LANGUAGE plpgsql AS $$
DECLARE
  v_now_ms bigint;
  r record;
BEGIN
  PERFORM lock_tenants(p_tenant_id);
  v_now_ms := now_us(p_now_ms) / 1000;
  FOR r IN
    SELECT * FROM unnest(p_id, p_tenant_id, p_delivered) WITH ORDINALITY AS a (id, tenant_id, delivered, n)
  LOOP
    UPDATE hold o SET deadline_ms = v_now_ms + p_lease_ms, progressed_ms = v_now_ms,
        delivered = coalesce(r.delivered::jsonb, o.delivered)
      WHERE o.id = r.id AND o.tenant_id = r.tenant_id AND o.state = 'pending';
    IF FOUND THEN
      RETURN NEXT r.n;
    END IF;
  END LOOP;
END
$$;
