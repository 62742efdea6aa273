-- A bucket's current state, as `admit_batch` reads it. Full if no genuine request can have left it in that state.
CREATE OR REPLACE FUNCTION repaired_us(p_full_us bigint, p_written_us bigint, p_now_us bigint, p_longest_us bigint)
RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
  SELECT p_now_us + CASE
    WHEN greatest(p_full_us, 0) - greatest(p_written_us, p_now_us) BETWEEN 0 AND p_longest_us
    THEN greatest(p_full_us, 0) - greatest(p_written_us, p_now_us)
    ELSE 0 END
$$;

-- rule 30: repair
-- Computes a tenant's state anew from the books and from its holds, whatever is stored.
--
-- Spent in this month: key '' is the tenant's own sum. Without a sum for this month the stored one stays. Otherwise it
-- is limited to the range between metering's sum and that plus everything settled here. Only the given budgets remain.
-- No withdrawal remains: the books are locked, so a withdrawal that they do not include will never be booked.
CREATE OR REPLACE FUNCTION repair(
  p_now_ms bigint, p_tenant_id text, p_version bigint, p_balance_nanos bigint, p_suspended boolean,
  p_spent_month int[], p_spent_key_id text[], p_spent_nanos bigint[],
  p_budget_key_id text[], p_budget_version bigint[], p_budget_nanos bigint[], p_release_id text[])
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  MINUTE_US constant bigint := 60000000;
  -- No genuine request leaves a tokens bucket further from full. It may exceed its minute: settlements correct it.
  LONGEST_REFILL_US constant bigint := 3600000000;
  v_now_us bigint;
  v_month int;
  v_is_told boolean;
BEGIN
  PERFORM lock_tenants(ARRAY[p_tenant_id]);
  v_now_us := now_us(p_now_ms);
  v_month := month_of(v_now_us);
  v_is_told := v_month = ANY (p_spent_month);
  DELETE FROM withdrawal w WHERE w.tenant_id = p_tenant_id;
  DELETE FROM hold h WHERE h.id = ANY (p_release_id) AND h.tenant_id = p_tenant_id AND h.state = 'settled';
  INSERT INTO key_state (tenant_id, key_id)
    SELECT p_tenant_id, id FROM (
      SELECT h.key_id AS id FROM hold h WHERE h.tenant_id = p_tenant_id
      UNION SELECT u.key_id FROM unnest(p_spent_month, p_spent_key_id) AS u (month, key_id)
        WHERE u.key_id <> '' AND u.month = v_month
      UNION SELECT u FROM unnest(p_budget_key_id) u WHERE u <> '') wanted
    ON CONFLICT DO NOTHING;
  UPDATE key_state k SET pending_nanos = s.pending_nanos, in_flight = s.in_flight,
      budget_nanos = b.nanos, budget_version = coalesce(b.version, 0),
      month = CASE WHEN v_is_told THEN v_month ELSE k.month END,
      spent_nanos = CASE WHEN NOT v_is_told THEN k.spent_nanos
        ELSE least(
          greatest(CASE WHEN k.month >= v_month THEN k.spent_nanos ELSE 0 END, s.spent_nanos),
          s.spent_nanos + s.settled_nanos) END,
      requests_full_us = repaired_us(k.requests_full_us, k.buckets_written_us, v_now_us, MINUTE_US),
      tokens_full_us = repaired_us(k.tokens_full_us, k.buckets_written_us, v_now_us, LONGEST_REFILL_US),
      buckets_written_us = v_now_us
    FROM (
      SELECT o.key_id, coalesce(sum(h.hold_nanos) FILTER (WHERE h.state = 'pending'), 0)::bigint AS pending_nanos,
        count(h.id) FILTER (WHERE h.state = 'pending') AS in_flight,
        coalesce(sum(h.cost_nanos) FILTER (WHERE h.state = 'settled'), 0)::bigint AS settled_nanos,
        coalesce((
          SELECT u.nanos FROM unnest(p_spent_month, p_spent_key_id, p_spent_nanos) AS u (month, key_id, nanos)
          WHERE u.key_id = o.key_id AND u.month = v_month), 0) AS spent_nanos
      FROM key_state o LEFT JOIN hold h ON h.tenant_id = p_tenant_id AND h.key_id = o.key_id
      WHERE o.tenant_id = p_tenant_id GROUP BY o.key_id) s
    LEFT JOIN unnest(p_budget_key_id, p_budget_version, p_budget_nanos) AS b (key_id, version, nanos)
      ON b.key_id = s.key_id
    WHERE k.tenant_id = p_tenant_id AND k.key_id = s.key_id;
  UPDATE tenant t SET version = p_version, balance_nanos = p_balance_nanos, suspended = p_suspended,
      settled_nanos = s.settled_nanos, pending_nanos = s.pending_nanos, in_flight = s.in_flight,
      budget_nanos = b.nanos, budget_version = coalesce(b.version, 0),
      month = CASE WHEN v_is_told THEN v_month ELSE t.month END,
      spent_nanos = CASE WHEN NOT v_is_told THEN t.spent_nanos
        ELSE least(
          greatest(CASE WHEN t.month >= v_month THEN t.spent_nanos ELSE 0 END, s.spent_nanos),
          s.spent_nanos + s.settled_nanos) END,
      requests_full_us = repaired_us(t.requests_full_us, t.buckets_written_us, v_now_us, MINUTE_US),
      tokens_full_us = repaired_us(t.tokens_full_us, t.buckets_written_us, v_now_us, LONGEST_REFILL_US),
      buckets_written_us = v_now_us
    FROM (
      SELECT coalesce(sum(h.hold_nanos) FILTER (WHERE h.state = 'pending'), 0)::bigint AS pending_nanos,
        count(h.id) FILTER (WHERE h.state = 'pending') AS in_flight,
        coalesce(sum(h.cost_nanos) FILTER (WHERE h.state = 'settled'), 0)::bigint AS settled_nanos,
        coalesce((
          SELECT u.nanos FROM unnest(p_spent_month, p_spent_key_id, p_spent_nanos) AS u (month, key_id, nanos)
          WHERE u.key_id = '' AND u.month = v_month), 0) AS spent_nanos
      FROM hold h WHERE h.tenant_id = p_tenant_id) s
    LEFT JOIN unnest(p_budget_key_id, p_budget_version, p_budget_nanos) AS b (key_id, version, nanos)
      ON b.key_id = ''
    WHERE t.tenant_id = p_tenant_id;
END
$$;
