-- Admission (`admit_batch`): limits, credit, budgets, hold. The rules have the numbers of the table in
-- libs/admission/README.md. The writes are in the function itself: in functions of their own they made an admission 2 %
-- slower (docs/decisions/0014-functions-in-files.md).

-- Admits a batch of requests, one array element for each, in order within each tenant. No id may occur twice. Returns a
-- row for each; `n` is its position from 1. code: 'held', a refusal of admission-store.ts, or 'id_used' (rule 2).
CREATE OR REPLACE FUNCTION admit_batch(
  p_now_ms bigint, p_lease_ms bigint,
  p_id text[], p_tenant_id text[], p_key_id text[], p_draft text[],
  p_key_requests bigint[], p_key_tokens bigint[], p_key_concurrency bigint[],
  p_tenant_requests bigint[], p_tenant_tokens bigint[], p_tenant_concurrency bigint[],
  p_key_budget_nanos bigint[], p_tenant_budget_nanos bigint[],
  p_prompt_tokens bigint[], p_prompt_femtos numeric[], p_output_femtos numeric[],
  p_want_tokens bigint[], p_min_tokens bigint[], p_bound_is_exact boolean[],
  -- The maximum cost of the request with all tokens that it wants, and with one output token (none if it wants none).
  p_want_nanos bigint[], p_least_nanos bigint[],
  -- Only if a request of the call has a claim (claims.sql). '': this one has none.
  p_claim text[] DEFAULT NULL, p_fingerprint text[] DEFAULT NULL,
  p_keep_ms bigint DEFAULT 0, p_max_claims bigint DEFAULT 0)
RETURNS TABLE (
  n bigint, code text, scope text, retry_ms bigint, granted_nanos bigint, granted_tokens bigint,
  requests_left bigint, requests_reset_ms bigint, tokens_left bigint, tokens_reset_ms bigint,
  tenant_requests_left bigint, tenant_requests_reset_ms bigint,
  tenant_tokens_left bigint, tenant_tokens_reset_ms bigint)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  MINUTE_US constant bigint := 60000000;
  v_now_us bigint;
  v_full_us bigint;
  v_month int;
  v_repeats boolean;
  -- The claims of the holds of this call, each behind its tenant.
  v_taken text[] := '{}';
  r record;
  h record;
  -- What credit and budgets grant where that is not all.
  g record;
  -- The current tenant and key: as stored, then as changed by the requests before.
  t record;
  t_id text;
  t_changed boolean;
  k record;
  k_id text;
  k_changed boolean;
  -- The four buckets with this request in them.
  v_key_requests_us bigint;
  v_tenant_requests_us bigint;
  v_key_tokens_us bigint;
  v_tenant_tokens_us bigint;
  -- Null: there is no budget.
  v_key_unspent bigint;
  v_tenant_unspent bigint;
  v_available bigint;
  v_money text;
  v_money_scope text;
  -- What was granted, by position. Null: nothing.
  v_nanos bigint[] := array_fill(NULL::bigint, ARRAY[cardinality(p_id)]);
  v_tokens bigint[] := array_fill(NULL::bigint, ARRAY[cardinality(p_id)]);
BEGIN
  v_now_us := locked_us(p_now_ms, p_tenant_id);
  v_full_us := v_now_us + MINUTE_US;
  v_month := month_of(v_now_us);
  v_repeats := EXISTS (SELECT FROM hold WHERE id = ANY (p_id));

  FOR r IN
    SELECT a.*, lead(a.tenant_id) OVER w AS next_tenant_id, lead(a.key_id) OVER w AS next_key_id
    FROM unnest(
        p_id, p_tenant_id, p_key_id, p_draft,
        p_key_requests, p_key_tokens, p_key_concurrency, p_tenant_requests, p_tenant_tokens, p_tenant_concurrency,
        p_key_budget_nanos, p_tenant_budget_nanos, p_prompt_tokens, p_prompt_femtos, p_output_femtos,
        p_want_tokens, p_min_tokens, p_bound_is_exact, p_want_nanos, p_least_nanos, p_claim)
      WITH ORDINALITY AS a (
        id, tenant_id, key_id, draft,
        key_requests, key_tokens, key_concurrency, tenant_requests, tenant_tokens, tenant_concurrency,
        key_budget, tenant_budget, prompt_tokens, prompt_femtos, output_femtos,
        want_tokens, min_tokens, bound_is_exact, want_nanos, least_nanos, claim, n)
    WINDOW w AS (ORDER BY a.tenant_id COLLATE "C", a.n)
    ORDER BY a.tenant_id COLLATE "C", a.n
  LOOP
    -- The state of the tenant and the key, loaded when either changes from one request to the next.
    IF r.tenant_id IS DISTINCT FROM t_id THEN
      SELECT * INTO t FROM tenant_at(r.tenant_id, v_month, v_now_us);
      t_id := r.tenant_id;
      -- Written even if all requests are refused: the bucket then fills from now on, and not anew from each read.
      t_changed := t.is_ahead;
      k_id := NULL;
    END IF;
    IF r.key_id IS DISTINCT FROM k_id THEN
      SELECT * INTO k FROM key_at(r.tenant_id, r.key_id, v_month, v_now_us);
      k_id := r.key_id;
      k_changed := k.is_ahead;
    END IF;

    n := r.n;
    code := NULL;
    scope := NULL;
    retry_ms := NULL;
    granted_nanos := NULL;
    granted_tokens := NULL;

    -- rule 2: a repeated admission
    IF v_repeats THEN
      SELECT o.* INTO h FROM hold o WHERE o.id = r.id;
      IF FOUND THEN
        code := CASE
          WHEN h.state = 'pending' AND h.tenant_id = r.tenant_id AND h.key_id = r.key_id THEN 'held' ELSE 'id_used' END;
        granted_nanos := h.hold_nanos;
        granted_tokens := h.output_tokens;
      END IF;
    END IF;

    -- rule 31: a claimed key
    -- Before all limits: a repeat of a request that runs or was settled is no request of its own.
    IF r.claim <> '' AND code IS NULL THEN
      IF r.tenant_id || r.claim = ANY (v_taken) OR EXISTS (
        SELECT FROM claim c WHERE c.tenant_id = r.tenant_id AND c.id = r.claim AND CASE
          WHEN c.settled THEN c.created_ms > v_now_us / 1000 - p_keep_ms
          ELSE EXISTS (SELECT FROM hold o WHERE o.id = c.request_id AND o.state = 'pending') END)
      THEN
        code := 'claimed';
        scope := 'key';
      END IF;
    END IF;

    IF code IS NULL THEN
      -- rule 3: spendable and unspent
      -- Spendable: balance − settled. Unspent: budget − spent in the month. Available: the least of both −
      -- what running requests hold.
      v_key_unspent := coalesce(k.budget_nanos, r.key_budget) - k.spent_nanos;
      v_tenant_unspent := coalesce(t.budget_nanos, r.tenant_budget) - t.spent_nanos;
      v_available := least(
        t.spendable - t.pending_nanos, v_key_unspent - k.pending_nanos, v_tenant_unspent - t.pending_nanos);
      v_money := NULL;
      -- rule 4: requests that cost nothing
      -- They need no credit and no budget. Others usually get all they want.
      IF r.want_nanos = 0 OR r.want_nanos <= v_available THEN
        granted_tokens := r.want_tokens;
        granted_nanos := r.want_nanos;
      ELSE
        g := grant_part(
          r.want_tokens, r.min_tokens, r.prompt_femtos, r.output_femtos, r.bound_is_exact, r.least_nanos,
          t.spendable, v_key_unspent, v_tenant_unspent, v_available, v_key_unspent - k.pending_nanos);
        granted_tokens := g.tokens;
        granted_nanos := g.nanos;
        v_money := g.refusal;
        v_money_scope := g.scope;
      END IF;

      -- rule 9: bucket arithmetic
      v_key_requests_us := k.requests_us + bucket_us(1, r.key_requests);
      v_tenant_requests_us := t.requests_us + bucket_us(1, r.tenant_requests);
      v_key_tokens_us := k.tokens_us + bucket_us(
        r.prompt_tokens + CASE WHEN v_money IS NULL THEN granted_tokens ELSE r.want_tokens END, r.key_tokens);
      v_tenant_tokens_us := t.tokens_us + bucket_us(
        r.prompt_tokens + CASE WHEN v_money IS NULL THEN granted_tokens ELSE r.want_tokens END, r.tenant_tokens);
      -- rule 10: tenant suspended
      IF t.suspended THEN
        code := 'tenant_suspended';
        scope := 'tenant';
      -- rule 11: request rate
      -- rule 12: token rate
      ELSIF greatest(v_key_requests_us, v_tenant_requests_us, v_key_tokens_us, v_tenant_tokens_us) > v_full_us THEN
        code := CASE
          WHEN greatest(v_key_requests_us, v_tenant_requests_us) > v_full_us THEN 'requests' ELSE 'tokens' END;
        scope := CASE
          WHEN (code = 'requests' AND v_key_requests_us > v_full_us)
            OR (code = 'tokens' AND v_key_tokens_us > v_full_us) THEN 'key'
          ELSE 'tenant' END;
        -- The same request passes once all four buckets have room.
        retry_ms := (greatest(v_key_requests_us, v_tenant_requests_us, v_key_tokens_us, v_tenant_tokens_us)
          - v_full_us + 999) / 1000;
      -- rule 13: concurrency
      ELSIF k.in_flight >= r.key_concurrency OR t.in_flight >= r.tenant_concurrency THEN
        code := 'concurrency';
        scope := CASE WHEN k.in_flight >= r.key_concurrency THEN 'key' ELSE 'tenant' END;
        retry_ms := passing_ms(t.hold_mean_ms, CASE WHEN scope = 'key' THEN k.in_flight ELSE t.in_flight END);
      ELSIF v_money IS NOT NULL THEN
        code := v_money;
        scope := v_money_scope;
        retry_ms := CASE
          WHEN v_money = 'credit_held'
          THEN passing_ms(t.hold_mean_ms, CASE WHEN scope = 'key' THEN k.in_flight ELSE t.in_flight END) END;
      ELSE
        -- Admitted: update the sums and buckets.
        v_nanos[r.n] := granted_nanos;
        v_tokens[r.n] := granted_tokens;
        code := 'held';
        IF r.claim <> '' THEN
          v_taken := v_taken || (r.tenant_id || r.claim);
        END IF;
        t.pending_nanos := t.pending_nanos + granted_nanos;
        t.in_flight := t.in_flight + 1;
        t.requests_us := v_tenant_requests_us;
        t.tokens_us := v_tenant_tokens_us;
        t_changed := true;
        k.pending_nanos := k.pending_nanos + granted_nanos;
        k.in_flight := k.in_flight + 1;
        k.requests_us := v_key_requests_us;
        k.tokens_us := v_key_tokens_us;
        k_changed := true;
      END IF;
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

    -- Written once for consecutive requests of the same key, and once for each tenant.
    IF k_changed AND (r.next_key_id, r.next_tenant_id) IS DISTINCT FROM (r.key_id, r.tenant_id) THEN
      UPDATE key_state s SET pending_nanos = k.pending_nanos, in_flight = k.in_flight,
          requests_full_us = k.requests_us, tokens_full_us = k.tokens_us, buckets_written_us = v_now_us
        WHERE s.tenant_id = t_id AND s.key_id = k_id;
      IF NOT FOUND THEN
        INSERT INTO key_state (
            tenant_id, key_id, pending_nanos, in_flight, requests_full_us, tokens_full_us, buckets_written_us)
          VALUES (t_id, k_id, k.pending_nanos, k.in_flight, k.requests_us, k.tokens_us, v_now_us);
      END IF;
    END IF;
    IF t_changed AND r.next_tenant_id IS DISTINCT FROM r.tenant_id THEN
      UPDATE tenant s SET pending_nanos = t.pending_nanos, in_flight = t.in_flight,
          requests_full_us = t.requests_us, tokens_full_us = t.tokens_us, buckets_written_us = v_now_us
        WHERE s.tenant_id = t_id;
    END IF;
  END LOOP;

  -- The holds themselves, in one statement: a third of the time of single statements.
  INSERT INTO hold (
      id, tenant_id, key_id, hold_nanos, output_tokens, hold_tokens, key_tokens_per_minute, tenant_tokens_per_minute,
      key_budget_nanos, tenant_budget_nanos, deadline_ms, progressed_ms, admitted_ms, record)
    SELECT
      a.id, a.tenant_id, a.key_id, a.nanos, a.tokens, a.prompt_tokens + a.tokens, a.key_tokens, a.tenant_tokens,
      a.key_budget, a.tenant_budget, v_now_us / 1000 + p_lease_ms, v_now_us / 1000, v_now_us / 1000, a.draft::json
    FROM unnest(
        p_id, p_tenant_id, p_key_id, p_draft, p_key_tokens, p_tenant_tokens,
        p_key_budget_nanos, p_tenant_budget_nanos, p_prompt_tokens, v_nanos, v_tokens)
      AS a (
        id, tenant_id, key_id, draft, key_tokens, tenant_tokens,
        key_budget, tenant_budget, prompt_tokens, nanos, tokens)
    WHERE a.nanos IS NOT NULL;
  IF v_taken <> '{}' THEN
    PERFORM take_claims(
      v_now_us / 1000, p_keep_ms, p_max_claims, p_id, p_tenant_id, p_claim, p_fingerprint, v_nanos);
  END IF;
END
$$;
