-- rule 16: extension
-- Extends holds by the wanted amount, or by what is available if that reaches the minimum. One array element for each
-- hold; `n` is its position from 1. code: 'extended', 'refused' (credit or a budget is below the minimum), 'forbidden'
-- (no such pending hold).
CREATE OR REPLACE FUNCTION extend(
  p_now_ms bigint, p_id text[], p_tenant_id text[], p_want_nanos bigint[], p_min_nanos bigint[])
RETURNS TABLE (n bigint, code text, granted_nanos bigint, total_nanos bigint)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  v_month int;
  r record;
  h record;
BEGIN
  PERFORM lock_tenants(p_tenant_id);
  v_month := month_of(now_us(p_now_ms));
  FOR r IN
    SELECT * FROM unnest(p_id, p_tenant_id, p_want_nanos, p_min_nanos)
      WITH ORDINALITY AS a (id, tenant_id, want_nanos, min_nanos, n)
    ORDER BY a.tenant_id COLLATE "C", a.n
  LOOP
    n := r.n;
    granted_nanos := 0;
    SELECT o.hold_nanos, o.key_id, least(
        t.balance_nanos - t.settled_nanos - t.pending_nanos,
        coalesce(t.budget_nanos, o.tenant_budget_nanos) - t.pending_nanos
          - CASE WHEN t.month >= v_month THEN t.spent_nanos ELSE 0 END,
        coalesce(k.budget_nanos, o.key_budget_nanos) - k.pending_nanos
          - CASE WHEN k.month >= v_month THEN k.spent_nanos ELSE 0 END) AS available_nanos
      INTO h
      FROM hold o
      JOIN tenant t ON t.tenant_id = o.tenant_id
      JOIN key_state k ON k.tenant_id = o.tenant_id AND k.key_id = o.key_id
      WHERE o.id = r.id AND o.tenant_id = r.tenant_id AND o.state = 'pending';
    IF NOT FOUND THEN
      code := 'forbidden';
    ELSIF least(r.want_nanos, h.available_nanos) < r.min_nanos THEN
      code := 'refused';
    ELSE
      code := 'extended';
      granted_nanos := least(r.want_nanos, h.available_nanos);
      total_nanos := h.hold_nanos + granted_nanos;
      UPDATE hold SET hold_nanos = total_nanos WHERE id = r.id;
      UPDATE tenant s SET pending_nanos = s.pending_nanos + granted_nanos WHERE s.tenant_id = r.tenant_id;
      UPDATE key_state s SET pending_nanos = s.pending_nanos + granted_nanos
        WHERE s.tenant_id = r.tenant_id AND s.key_id = h.key_id;
    END IF;
    RETURN NEXT;
  END LOOP;
END
$$;
