-- What processes of the previous version call, with the answers that their prepared statements expect. To be deleted in
-- the next version. The rules are in `admit_batch` (admit.sql), `look_batch` (look.sql) and `recall_batch`
-- (claims.sql), which these call.
CREATE OR REPLACE FUNCTION admit(
  p_now_ms bigint, p_lease_ms bigint,
  p_id text[], p_tenant_id text[], p_key_id text[], p_draft text[],
  p_key_requests bigint[], p_key_tokens bigint[], p_key_concurrency bigint[],
  p_tenant_requests bigint[], p_tenant_tokens bigint[], p_tenant_concurrency bigint[],
  p_key_budget_nanos bigint[], p_tenant_budget_nanos bigint[],
  p_prompt_tokens bigint[], p_prompt_femtos numeric[], p_output_femtos numeric[],
  p_want_tokens bigint[], p_min_tokens bigint[], p_bound_is_exact boolean[],
  p_want_nanos bigint[], p_least_nanos bigint[])
RETURNS TABLE (
  n bigint, code text, scope text, retry_ms bigint, granted_nanos bigint, granted_tokens bigint,
  requests_left bigint, requests_reset_ms bigint, tokens_left bigint, tokens_reset_ms bigint)
LANGUAGE sql AS $$
  SELECT n, code, scope, retry_ms, granted_nanos, granted_tokens,
    requests_left, requests_reset_ms, tokens_left, tokens_reset_ms
  FROM admit_batch(
    p_now_ms, p_lease_ms, p_id, p_tenant_id, p_key_id, p_draft,
    p_key_requests, p_key_tokens, p_key_concurrency, p_tenant_requests, p_tenant_tokens, p_tenant_concurrency,
    p_key_budget_nanos, p_tenant_budget_nanos, p_prompt_tokens, p_prompt_femtos, p_output_femtos,
    p_want_tokens, p_min_tokens, p_bound_is_exact, p_want_nanos, p_least_nanos)
$$;

CREATE OR REPLACE FUNCTION look(
  p_now_ms bigint,
  p_tenant_id text[], p_key_id text[],
  p_key_requests bigint[], p_key_tokens bigint[], p_key_concurrency bigint[],
  p_tenant_requests bigint[], p_tenant_tokens bigint[], p_tenant_concurrency bigint[],
  p_key_budget_nanos bigint[], p_tenant_budget_nanos bigint[], p_is_paid boolean[])
RETURNS TABLE (
  n bigint, code text, scope text, retry_ms bigint,
  requests_left bigint, requests_reset_ms bigint, tokens_left bigint, tokens_reset_ms bigint)
LANGUAGE sql STABLE AS $$
  SELECT n, code, scope, retry_ms, requests_left, requests_reset_ms, tokens_left, tokens_reset_ms
  FROM look_batch(
    p_now_ms, p_tenant_id, p_key_id,
    p_key_requests, p_key_tokens, p_key_concurrency, p_tenant_requests, p_tenant_tokens, p_tenant_concurrency,
    p_key_budget_nanos, p_tenant_budget_nanos, p_is_paid)
$$;

CREATE OR REPLACE FUNCTION apply_news(
  p_tenant_id text[], p_version bigint[], p_balance_nanos bigint[], p_suspended boolean[],
  p_release_tenant_id text[], p_release_id text[])
RETURNS void
LANGUAGE sql AS $$
  SELECT apply_balance_updates(
    p_tenant_id, p_version, p_balance_nanos, p_suspended, p_release_tenant_id, p_release_id)
$$;

CREATE OR REPLACE FUNCTION recall(p_now_ms bigint, p_keep_ms bigint, p_tenant_id text[], p_claim text[])
RETURNS TABLE (n bigint, code text, fingerprint text, age_ms bigint, answer text)
LANGUAGE plpgsql AS $$
BEGIN
  FOR n, code, fingerprint, age_ms IN
    SELECT r.n, r.code, r.fingerprint, r.age_ms FROM recall_batch(p_now_ms, p_keep_ms, p_tenant_id, p_claim) r
  LOOP
    answer := (
      SELECT a.answer FROM claim_answers(ARRAY[p_tenant_id[n]], ARRAY[p_claim[n]], ARRAY[fingerprint]) a);
    RETURN NEXT;
  END LOOP;
END
$$;

-- A call of the previous version that waited for the tables to be migrated still has its old text, which calls these.
CREATE OR REPLACE FUNCTION set_bucket(
  p_tenant_id text, p_key_id text, p_requests_us bigint, p_tokens_us bigint, p_now_us bigint)
RETURNS void LANGUAGE sql AS $$
  UPDATE tenant SET requests_full_us = p_requests_us, tokens_full_us = p_tokens_us, buckets_written_us = p_now_us
    WHERE tenant_id = p_tenant_id AND p_key_id = '';
  UPDATE key_state SET requests_full_us = p_requests_us, tokens_full_us = p_tokens_us, buckets_written_us = p_now_us
    WHERE tenant_id = p_tenant_id AND key_id = p_key_id
$$;

CREATE OR REPLACE FUNCTION correct_tokens(p_tenant_id text, p_key_id text, p_now_us bigint, p_by_us bigint) RETURNS void
LANGUAGE sql AS $$
  UPDATE tenant SET
      requests_full_us = requests_full_us - ahead_us(buckets_written_us, requests_full_us, p_now_us),
      tokens_full_us = p_by_us + full_us(tokens_full_us, buckets_written_us, requests_full_us, p_now_us),
      buckets_written_us = p_now_us
    WHERE tenant_id = p_tenant_id AND p_key_id = '' AND p_by_us <> 0;
  UPDATE key_state SET
      requests_full_us = requests_full_us - ahead_us(buckets_written_us, requests_full_us, p_now_us),
      tokens_full_us = p_by_us + full_us(tokens_full_us, buckets_written_us, requests_full_us, p_now_us),
      buckets_written_us = p_now_us
    WHERE tenant_id = p_tenant_id AND key_id = p_key_id AND p_by_us <> 0
$$;
