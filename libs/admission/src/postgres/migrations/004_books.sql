-- Between the holds and the books: what died, what the ledger still owes, what it has taken in.

-- The records of at most `p_limit` holds that expired just now, and of at most `p_limit` settled ones of which the ledger has not been heard for p_confirm_after_ms.
CREATE FUNCTION sweep(p_now_ms bigint, p_limit int, p_confirm_after_ms bigint) RETURNS SETOF text
LANGUAGE plpgsql AS $$
DECLARE
  v_now_us bigint := now_us(p_now_ms);
  v_ids text[] := array(SELECT id FROM hold WHERE state = 'pending' AND deadline_ms <= v_now_us / 1000 LIMIT p_limit);
  e record;
BEGIN
  IF cardinality(v_ids) > 0 THEN
    -- 1. Under the lock only those that are still pending and past their deadline: another sweeper or a sign of life may have come first.
    PERFORM lock_tenants(array(SELECT tenant_id FROM hold WHERE id = ANY (v_ids)));
    SELECT array_agg(id) AS ids, array_agg(tenant_id) AS tenant_ids, array_agg(cost_nanos_now) AS costs, array_agg(tokens) AS tokens,
        array_agg(month_of(progressed_ms * 1000)) AS months,
        array_agg((record::jsonb || delivered || jsonb_build_object(
          'costNanos', cost_nanos_now::text,
          'overrunNanos', ((delivered ->> 'costNanos')::bigint - cost_nanos_now)::text,
          'estimated', true,
          'outcome', 'expired',
          'endedAt', to_char(to_timestamp(progressed_ms / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')))::text) AS records
      INTO e
      FROM (
        SELECT h.*, least((delivered ->> 'costNanos')::bigint, CASE WHEN delivered IS NOT NULL THEN hold_nanos END) AS cost_nanos_now,
          coalesce((delivered ->> 'promptTokens')::bigint + (delivered ->> 'completionTokens')::bigint, 0) AS tokens
        FROM hold h WHERE id = ANY (v_ids) AND state = 'pending' AND deadline_ms <= v_now_us / 1000) expired;
    -- 2. Settled at the recorded progress, or away at none.
    IF e.ids IS NOT NULL THEN
      RETURN QUERY SELECT e.records[d.n] FROM end_holds(v_now_us, e.ids, e.tenant_ids, e.costs, e.tokens, e.months, e.records) d WHERE d.code = 'settled';
    END IF;
  END IF;

  -- 3. Handed out again: to one sweeper at a time, as the others pass by locked rows and moved-on ones. It waits for nothing, so its row locks
  -- cannot close a circle with the tenants' locks.
  RETURN QUERY UPDATE hold SET unconfirmed_since_ms = v_now_us / 1000
    WHERE id = ANY (array(
      SELECT id FROM hold
      WHERE state = 'settled' AND unconfirmed_since_ms <= v_now_us / 1000 - p_confirm_after_ms AND id <> ALL (v_ids)
      ORDER BY unconfirmed_since_ms LIMIT p_limit FOR UPDATE SKIP LOCKED))
    RETURNING hold.record::text;
END
$$;

-- The balance of each tenant only if it is newer, the releases always: settled holds go, and their cost comes off what is settled, in the same
-- transaction as the balance that has them inside. p_release_tenant_id and p_release_id: all releases of all news.
CREATE FUNCTION apply_news(
  p_tenant_id text[], p_version bigint[], p_balance_nanos bigint[], p_suspended boolean[], p_release_tenant_id text[], p_release_id text[])
RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  r record;
  v_ids text[];
  v_released bigint;
BEGIN
  PERFORM lock_tenants(p_tenant_id);
  FOR r IN SELECT * FROM unnest(p_tenant_id, p_version, p_balance_nanos, p_suspended) AS a (tenant_id, version, balance_nanos, suspended) LOOP
    UPDATE tenant t SET version = r.version, balance_nanos = r.balance_nanos, suspended = r.suspended
      WHERE t.tenant_id = r.tenant_id AND t.version < r.version;
  END LOOP;
  FOR r IN SELECT u.tenant_id, array_agg(u.id) AS ids FROM unnest(p_release_tenant_id, p_release_id) AS u (tenant_id, id) GROUP BY u.tenant_id LOOP
    WITH gone AS (DELETE FROM hold h WHERE h.id = ANY (r.ids) AND h.tenant_id = r.tenant_id AND h.state = 'settled' RETURNING h.cost_nanos)
      SELECT coalesce(sum(cost_nanos), 0) INTO v_released FROM gone;
    IF v_released > 0 THEN
      UPDATE tenant t SET settled_nanos = t.settled_nanos - v_released WHERE t.tenant_id = r.tenant_id;
    END IF;
  END LOOP;
END
$$;

-- One statement: all of it at one instant. Reads the hold table as a whole: for reconcile, not for a request.
CREATE FUNCTION snapshot(p_tenant_id text, p_after text, p_limit int)
RETURNS TABLE (
  tenant_id text, version bigint, balance_nanos bigint, settled_nanos bigint, pending_nanos bigint,
  pending_holds bigint, settled_holds bigint, rows_pending_nanos bigint, rows_settled_nanos bigint, oldest_settled_id text)
LANGUAGE sql STABLE AS $$
  WITH page AS MATERIALIZED (
    SELECT * FROM tenant t
    WHERE (p_tenant_id IS NULL OR t.tenant_id = p_tenant_id) AND (p_after IS NULL OR t.tenant_id > p_after)
    ORDER BY t.tenant_id LIMIT p_limit
  ), sums AS MATERIALIZED (
    SELECT h.tenant_id,
      count(*) FILTER (WHERE state = 'pending') AS pending_holds, coalesce(sum(hold_nanos) FILTER (WHERE state = 'pending'), 0)::bigint AS pending_nanos,
      count(*) FILTER (WHERE state = 'settled') AS settled_holds, coalesce(sum(cost_nanos) FILTER (WHERE state = 'settled'), 0)::bigint AS settled_nanos,
      min(id) FILTER (WHERE state = 'settled') AS oldest_settled_id
    FROM hold h WHERE h.tenant_id IN (SELECT page.tenant_id FROM page) GROUP BY h.tenant_id
  )
  SELECT page.tenant_id, page.version, page.balance_nanos, page.settled_nanos, page.pending_nanos,
    coalesce(sums.pending_holds, 0), coalesce(sums.settled_holds, 0), coalesce(sums.pending_nanos, 0), coalesce(sums.settled_nanos, 0), sums.oldest_settled_id
  FROM page LEFT JOIN sums ON sums.tenant_id = page.tenant_id ORDER BY page.tenant_id
$$;
