-- rule 29: withdrawals
-- Takes the amount of a refund out of the balance, all or nothing. code: 'withdrawn', 'refused' (with the available
-- amount), 'overtaken' (the books have that version without this debit). A repeat for the same version replaces the
-- first one, because two of one version cannot both be booked.
CREATE OR REPLACE FUNCTION withdraw(p_tenant_id text, p_version bigint, p_nanos bigint)
RETURNS TABLE (code text, available_nanos bigint)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  t record;
BEGIN
  PERFORM lock_tenants(ARRAY[p_tenant_id]);
  SELECT s.version, s.balance_nanos - s.settled_nanos - s.pending_nanos + coalesce(w.nanos, 0) AS available_nanos,
      coalesce(w.nanos, 0) AS first_nanos
    INTO t
    FROM tenant s LEFT JOIN withdrawal w ON w.tenant_id = s.tenant_id AND w.version = p_version
    WHERE s.tenant_id = p_tenant_id;
  available_nanos := t.available_nanos;
  IF t.version >= p_version THEN
    code := 'overtaken';
  ELSIF t.available_nanos < p_nanos THEN
    code := 'refused';
  ELSE
    code := 'withdrawn';
    INSERT INTO withdrawal (tenant_id, version, nanos) VALUES (p_tenant_id, p_version, p_nanos)
      ON CONFLICT (tenant_id, version) DO UPDATE SET nanos = excluded.nanos;
    UPDATE tenant s SET balance_nanos = s.balance_nanos + t.first_nanos - p_nanos WHERE s.tenant_id = p_tenant_id;
  END IF;
  RETURN NEXT;
END
$$;
