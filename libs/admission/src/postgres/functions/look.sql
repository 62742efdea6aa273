-- rule 15: the least request
-- What `admit_batch` would return for a request of one output token that costs a nano (or nothing if `p_is_paid` is false):
-- the same rules in the same order. Reads what is committed, locks nothing and writes nothing. An unknown tenant has no
-- credit and is not created.
CREATE OR REPLACE FUNCTION look_batch(
  p_now_ms bigint,
  p_tenant_id text[], p_key_id text[],
  p_key_requests bigint[], p_key_tokens bigint[], p_key_concurrency bigint[],
  p_tenant_requests bigint[], p_tenant_tokens bigint[], p_tenant_concurrency bigint[],
  p_key_budget_nanos bigint[], p_tenant_budget_nanos bigint[], p_is_paid boolean[])
-- code: a refusal of admission-store.ts, or null if the request would be admitted.
RETURNS TABLE (
  n bigint, code text, scope text, retry_ms bigint,
  requests_left bigint, requests_reset_ms bigint, tokens_left bigint, tokens_reset_ms bigint,
  tenant_requests_left bigint, tenant_requests_reset_ms bigint,
  tenant_tokens_left bigint, tenant_tokens_reset_ms bigint)
LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
DECLARE
  MINUTE_US constant bigint := 60000000;
  v_now_us constant bigint := now_us(p_now_ms);
  v_full_us constant bigint := v_now_us + MINUTE_US;
  v_month constant int := month_of(v_now_us);
  r record;
  t record;
  k record;
  -- The four buckets with this request in them.
  v_key_requests_us bigint;
  v_tenant_requests_us bigint;
  v_key_tokens_us bigint;
  v_tenant_tokens_us bigint;
  -- Null: there is no budget.
  v_key_unspent bigint;
  v_tenant_unspent bigint;
BEGIN
  FOR r IN
    SELECT * FROM unnest(
        p_tenant_id, p_key_id,
        p_key_requests, p_key_tokens, p_key_concurrency, p_tenant_requests, p_tenant_tokens, p_tenant_concurrency,
        p_key_budget_nanos, p_tenant_budget_nanos, p_is_paid)
      WITH ORDINALITY AS a (
        tenant_id, key_id,
        key_requests, key_tokens, key_concurrency, tenant_requests, tenant_tokens, tenant_concurrency,
        key_budget, tenant_budget, is_paid, n)
  LOOP
    -- The state of the tenant and the key.
    -- rule 1: a clock that was ahead
    SELECT coalesce(s.balance_nanos - s.settled_nanos, 0) AS spendable, coalesce(s.pending_nanos, 0) AS pending_nanos,
        coalesce(s.in_flight, 0) AS in_flight, coalesce(s.hold_mean_ms, 0) AS hold_mean_ms,
        coalesce(s.suspended, false) AS suspended, s.budget_nanos,
        CASE WHEN s.month >= v_month THEN s.spent_nanos ELSE 0 END AS spent_nanos,
        greatest(b.requests_full_us - ahead_us(b.written_us, b.requests_full_us, v_now_us), v_now_us)
            AS requests_us,
        greatest(b.tokens_full_us - ahead_us(b.written_us, b.requests_full_us, v_now_us), v_now_us)
            AS tokens_us
      INTO t FROM (SELECT 1) one
      LEFT JOIN tenant s ON s.tenant_id = r.tenant_id
      LEFT JOIN bucket b ON b.tenant_id = r.tenant_id AND b.key_id = '';
    SELECT coalesce(s.pending_nanos, 0) AS pending_nanos, coalesce(s.in_flight, 0) AS in_flight, s.budget_nanos,
        CASE WHEN s.month >= v_month THEN s.spent_nanos ELSE 0 END AS spent_nanos,
        greatest(b.requests_full_us - ahead_us(b.written_us, b.requests_full_us, v_now_us), v_now_us)
            AS requests_us,
        greatest(b.tokens_full_us - ahead_us(b.written_us, b.requests_full_us, v_now_us), v_now_us)
            AS tokens_us
      INTO k FROM (SELECT 1) one
      LEFT JOIN key_state s ON s.tenant_id = r.tenant_id AND s.key_id = r.key_id
      LEFT JOIN bucket b ON b.tenant_id = r.tenant_id AND b.key_id = r.key_id;

    -- rule 9: bucket arithmetic
    v_key_requests_us := k.requests_us + bucket_us(1, r.key_requests);
    v_tenant_requests_us := t.requests_us + bucket_us(1, r.tenant_requests);
    v_key_tokens_us := k.tokens_us + bucket_us(1, r.key_tokens);
    v_tenant_tokens_us := t.tokens_us + bucket_us(1, r.tenant_tokens);
    -- rule 3: spendable and unspent
    v_key_unspent := coalesce(k.budget_nanos, r.key_budget) - k.spent_nanos;
    v_tenant_unspent := coalesce(t.budget_nanos, r.tenant_budget) - t.spent_nanos;
    n := r.n;
    code := NULL;
    scope := NULL;
    retry_ms := NULL;
    -- rule 10: tenant suspended
    IF t.suspended THEN
      code := 'tenant_suspended';
      scope := 'tenant';
    -- rule 11: request rate
    -- rule 12: token rate
    ELSIF greatest(v_key_requests_us, v_tenant_requests_us, v_key_tokens_us, v_tenant_tokens_us) > v_full_us THEN
      code := CASE WHEN greatest(v_key_requests_us, v_tenant_requests_us) > v_full_us THEN 'requests' ELSE 'tokens' END;
      scope := CASE
        WHEN (code = 'requests' AND v_key_requests_us > v_full_us) OR (code = 'tokens' AND v_key_tokens_us > v_full_us)
        THEN 'key' ELSE 'tenant' END;
      retry_ms := (greatest(v_key_requests_us, v_tenant_requests_us, v_key_tokens_us, v_tenant_tokens_us)
        - v_full_us + 999) / 1000;
    -- rule 13: concurrency
    ELSIF k.in_flight >= r.key_concurrency OR t.in_flight >= r.tenant_concurrency THEN
      code := 'concurrency';
      scope := CASE WHEN k.in_flight >= r.key_concurrency THEN 'key' ELSE 'tenant' END;
    -- rule 4: requests that cost nothing
    ELSIF NOT r.is_paid THEN
      code := NULL;
    -- rule 6: budget reached
    ELSIF v_key_unspent < 1 OR v_tenant_unspent < 1 THEN
      code := 'budget_reached';
      scope := CASE WHEN v_key_unspent < 1 THEN 'key' ELSE 'tenant' END;
    -- rule 7: credit exhausted
    ELSIF t.spendable < 1 THEN
      code := 'credit_exhausted';
      scope := 'tenant';
    -- rule 8: clamped, or held by others
    ELSIF least(
        t.spendable - t.pending_nanos, v_key_unspent - k.pending_nanos, v_tenant_unspent - t.pending_nanos) < 1 THEN
      code := 'credit_held';
      scope := CASE WHEN v_key_unspent - k.pending_nanos < 1 THEN 'key' ELSE 'tenant' END;
    END IF;
    IF code IN ('concurrency', 'credit_held') THEN
      retry_ms := passing_ms(t.hold_mean_ms, CASE WHEN scope = 'key' THEN k.in_flight ELSE t.in_flight END);
    END IF;

    requests_left := floor(greatest(v_full_us - k.requests_us, 0)::float8 * r.key_requests / MINUTE_US);
    requests_reset_ms := (k.requests_us - v_now_us + 999) / 1000;
    tokens_left := floor(greatest(v_full_us - k.tokens_us, 0)::float8 * r.key_tokens / MINUTE_US);
    tokens_reset_ms := (k.tokens_us - v_now_us + 999) / 1000;
    tenant_requests_left := floor(greatest(v_full_us - t.requests_us, 0)::float8 * r.tenant_requests / MINUTE_US);
    tenant_requests_reset_ms := (t.requests_us - v_now_us + 999) / 1000;
    tenant_tokens_left := floor(greatest(v_full_us - t.tokens_us, 0)::float8 * r.tenant_tokens / MINUTE_US);
    tenant_tokens_reset_ms := (t.tokens_us - v_now_us + 999) / 1000;
    RETURN NEXT;
  END LOOP;
END
$$;
