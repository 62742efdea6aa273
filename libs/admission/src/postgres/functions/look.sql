-- rule 15: the least request
-- What `admit_batch` would return for a request of one output token that costs a nano (or nothing if `p_is_paid` is
-- false): the same rules in the same order. Reads what is committed, locks nothing and writes nothing. An unknown
-- tenant has no credit and is not created.
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
    -- The state of the tenant and the key, without `is_ahead`.
    SELECT spendable, pending_nanos, in_flight, hold_mean_ms, suspended, budget_nanos, spent_nanos,
        requests_us, tokens_us
      INTO t FROM tenant_at(r.tenant_id, v_month, v_now_us);
    SELECT pending_nanos, in_flight, budget_nanos, spent_nanos, requests_us, tokens_us
      INTO k FROM key_at(r.tenant_id, r.key_id, v_month, v_now_us);
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

    requests_left := left_in_bucket(k.requests_us, r.key_requests, v_now_us);
    requests_reset_ms := reset_ms(k.requests_us, v_now_us);
    tokens_left := left_in_bucket(k.tokens_us, r.key_tokens, v_now_us);
    tokens_reset_ms := reset_ms(k.tokens_us, v_now_us);
    tenant_requests_left := left_in_bucket(t.requests_us, r.tenant_requests, v_now_us);
    tenant_requests_reset_ms := reset_ms(t.requests_us, v_now_us);
    tenant_tokens_left := left_in_bucket(t.tokens_us, r.tenant_tokens, v_now_us);
    tenant_tokens_reset_ms := reset_ms(t.tokens_us, v_now_us);
    RETURN NEXT;
  END LOOP;
END
$$;
