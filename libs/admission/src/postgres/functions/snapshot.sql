-- One statement, so everything is from one instant. Reads all holds of the page's tenants, so it is for reconcile and a
-- tenant's page, not for a request.
CREATE OR REPLACE FUNCTION snapshot(p_tenant_id text, p_after text, p_limit int)
RETURNS TABLE (
  tenant_id text, version bigint, balance_nanos bigint, settled_nanos bigint, pending_nanos bigint,
  pending_holds bigint, settled_holds bigint, rows_pending_nanos bigint, rows_settled_nanos bigint,
  oldest_settled_id text, suspended boolean, in_flight bigint, withdrawn_nanos numeric)
LANGUAGE sql STABLE AS $$
  WITH page AS MATERIALIZED (
    SELECT * FROM tenant t
    WHERE (p_tenant_id IS NULL OR t.tenant_id = p_tenant_id) AND (p_after IS NULL OR t.tenant_id > p_after)
    ORDER BY t.tenant_id LIMIT p_limit
  )
  SELECT page.tenant_id, page.version, page.balance_nanos, page.settled_nanos, page.pending_nanos,
    sums.pending_holds, sums.settled_holds, sums.pending_nanos, sums.settled_nanos, sums.oldest_settled_id,
    page.suspended, page.in_flight,
    (SELECT coalesce(sum(w.nanos), 0) FROM withdrawal w
      WHERE w.tenant_id = page.tenant_id AND w.version > page.version)
  FROM page, LATERAL (
    SELECT count(*) FILTER (WHERE state = 'pending') AS pending_holds,
      coalesce(sum(hold_nanos) FILTER (WHERE state = 'pending'), 0)::bigint AS pending_nanos,
      count(*) FILTER (WHERE state = 'settled') AS settled_holds,
      coalesce(sum(cost_nanos) FILTER (WHERE state = 'settled'), 0)::bigint AS settled_nanos,
      min(id) FILTER (WHERE state = 'settled') AS oldest_settled_id
    FROM hold h WHERE h.tenant_id = page.tenant_id
  ) sums ORDER BY page.tenant_id
$$;
