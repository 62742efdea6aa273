-- The state of a tenant and of a key, as an admission and a look read it. PostgreSQL puts the body of both functions
-- into the statement that selects from them, so they cost nothing.

-- One row, also of an unknown tenant: it has no credit.
CREATE OR REPLACE FUNCTION tenant_at(p_tenant_id text, p_month int, p_now_us bigint)
RETURNS TABLE (
  spendable bigint, pending_nanos bigint, in_flight bigint, hold_mean_ms bigint, suspended boolean,
  -- Null: the budget that the request brings is in force.
  budget_nanos bigint, spent_nanos bigint,
  -- The two buckets by this clock, and whether they were written by one that was ahead.
  requests_us bigint, tokens_us bigint, is_ahead boolean)
LANGUAGE sql STABLE AS $$
  SELECT coalesce(s.balance_nanos - s.settled_nanos, 0), coalesce(s.pending_nanos, 0), coalesce(s.in_flight, 0),
    coalesce(s.hold_mean_ms, 0), coalesce(s.suspended, false),
    s.budget_nanos, CASE WHEN s.month >= p_month THEN s.spent_nanos ELSE 0 END,
    full_us(s.requests_full_us, s.buckets_written_us, s.requests_full_us, p_now_us),
    full_us(s.tokens_full_us, s.buckets_written_us, s.requests_full_us, p_now_us),
    coalesce(ahead_us(s.buckets_written_us, s.requests_full_us, p_now_us) > 0, false)
  FROM (SELECT 1) one
  LEFT JOIN tenant s ON s.tenant_id = p_tenant_id
$$;

-- The same of a key, which may have no state yet.
CREATE OR REPLACE FUNCTION key_at(p_tenant_id text, p_key_id text, p_month int, p_now_us bigint)
RETURNS TABLE (
  pending_nanos bigint, in_flight bigint, budget_nanos bigint, spent_nanos bigint,
  requests_us bigint, tokens_us bigint, is_ahead boolean)
LANGUAGE sql STABLE AS $$
  SELECT coalesce(s.pending_nanos, 0), coalesce(s.in_flight, 0),
    s.budget_nanos, CASE WHEN s.month >= p_month THEN s.spent_nanos ELSE 0 END,
    full_us(s.requests_full_us, s.buckets_written_us, s.requests_full_us, p_now_us),
    full_us(s.tokens_full_us, s.buckets_written_us, s.requests_full_us, p_now_us),
    coalesce(ahead_us(s.buckets_written_us, s.requests_full_us, p_now_us) > 0, false)
  FROM (SELECT 1) one
  LEFT JOIN key_state s ON s.tenant_id = p_tenant_id AND s.key_id = p_key_id
$$;
