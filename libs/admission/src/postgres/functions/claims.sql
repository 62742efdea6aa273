-- Claims: Idempotency-Keys in use. A claim is taken in the transaction that makes its hold, and settled in the
-- transaction that settles it: by its gateway, or by the sweep. So it needs no end of its own: if its hold is not
-- pending, and it was not settled, then the request was not charged, and the claim is free.

-- rule 33: the oldest claims
-- Deletes claims of the tenant that are older than p_keep_ms or beyond the newest p_max, the oldest first, but none
-- whose request is running. Looks at p_look claims. The caller has locked the tenant.
CREATE OR REPLACE FUNCTION forget_oldest(
  p_now_ms bigint, p_keep_ms bigint, p_max bigint, p_look bigint, p_tenant_id text)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  v_spare bigint := p_max - coalesce((SELECT claims FROM claim_sum WHERE tenant_id = p_tenant_id), 0);
  v_ids text[];
  v_chars bigint;
BEGIN
  SELECT array_agg(o.id), coalesce(sum(length(o.answer)), 0) INTO v_ids, v_chars
  FROM (
    SELECT c.id, c.request_id, c.created_ms, c.settled, c.answer,
      row_number() OVER (ORDER BY c.created_ms, c.id) AS place
    FROM claim c WHERE c.tenant_id = p_tenant_id ORDER BY c.created_ms, c.id LIMIT p_look) o
  WHERE (o.created_ms <= p_now_ms - p_keep_ms OR o.place <= -v_spare)
    AND (o.settled OR NOT EXISTS (SELECT FROM hold h WHERE h.id = o.request_id AND h.state = 'pending'));
  IF v_ids IS NOT NULL THEN
    DELETE FROM claim WHERE tenant_id = p_tenant_id AND id = ANY (v_ids);
    UPDATE claim_sum SET claims = claims - cardinality(v_ids), answer_chars = answer_chars - v_chars
      WHERE tenant_id = p_tenant_id;
  END IF;
END
$$;

-- Takes the claims of requests that `admit` has granted (their nanos are not null). It has locked the tenants, and
-- checked that the claims are free. '': no claim.
CREATE OR REPLACE FUNCTION take_claims(
  p_now_ms bigint, p_keep_ms bigint, p_max bigint,
  p_id text[], p_tenant_id text[], p_claim text[], p_fingerprint text[], p_nanos bigint[])
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  -- Looked at beside as many as were added, so that a tenant with too many gets below its bound.
  LOOK constant bigint := 10;
  r record;
BEGIN
  FOR r IN
    SELECT a.tenant_id, array_agg(a.claim) AS claims
    FROM unnest(p_tenant_id, p_claim, p_nanos) AS a (tenant_id, claim, nanos)
    WHERE a.nanos IS NOT NULL AND a.claim <> '' GROUP BY a.tenant_id
  LOOP
    -- Free claims of earlier requests, and expired ones, are replaced.
    INSERT INTO claim_sum AS s (tenant_id, claims) VALUES (r.tenant_id, cardinality(r.claims))
      ON CONFLICT (tenant_id) DO UPDATE SET
        claims = s.claims + excluded.claims
          - (SELECT count(*) FROM claim c WHERE c.tenant_id = r.tenant_id AND c.id = ANY (r.claims)),
        answer_chars = s.answer_chars - (
          SELECT coalesce(sum(length(c.answer)), 0) FROM claim c
          WHERE c.tenant_id = r.tenant_id AND c.id = ANY (r.claims));
    DELETE FROM claim c WHERE c.tenant_id = r.tenant_id AND c.id = ANY (r.claims);
    INSERT INTO claim (tenant_id, id, request_id, fingerprint, created_ms)
      SELECT a.tenant_id, a.claim, a.id, a.fingerprint, p_now_ms
      FROM unnest(p_id, p_tenant_id, p_claim, p_fingerprint, p_nanos) AS a (id, tenant_id, claim, fingerprint, nanos)
      WHERE a.nanos IS NOT NULL AND a.claim = ANY (r.claims) AND a.tenant_id = r.tenant_id;
    PERFORM forget_oldest(p_now_ms, p_keep_ms, p_max, LOOK + cardinality(r.claims), r.tenant_id);
  END LOOP;
END
$$;

-- rule 32: the answer of a claim
-- Settles the claim with its answer ('': not kept), and drops the oldest answers of the tenant beyond p_max_chars. The
-- claims stay, so that their requests do not run again.
CREATE OR REPLACE FUNCTION settle_claim(
  p_tenant_id text, p_id text, p_request_id text, p_answer text, p_max_chars bigint)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  v_sum bigint;
  v_oldest record;
BEGIN
  UPDATE claim SET settled = true, answer = nullif(p_answer, '')
    WHERE tenant_id = p_tenant_id AND id = p_id AND request_id = p_request_id AND NOT settled;
  IF NOT FOUND OR p_answer = '' THEN
    RETURN;
  END IF;
  UPDATE claim_sum SET answer_chars = answer_chars + length(p_answer) WHERE tenant_id = p_tenant_id
    RETURNING answer_chars INTO v_sum;
  WHILE v_sum > p_max_chars LOOP
    SELECT id, length(answer) AS chars INTO v_oldest FROM claim
      WHERE tenant_id = p_tenant_id AND answer IS NOT NULL ORDER BY created_ms, id LIMIT 1;
    EXIT WHEN NOT FOUND;
    UPDATE claim SET answer = NULL WHERE tenant_id = p_tenant_id AND id = v_oldest.id;
    UPDATE claim_sum SET answer_chars = answer_chars - v_oldest.chars WHERE tenant_id = p_tenant_id
      RETURNING answer_chars INTO v_sum;
  END LOOP;
END
$$;

-- rule 32: the answer of a claim
-- Settles the claims of requests that the sweep has charged. Nobody has their answers, so none is stored, and the
-- requests must not be charged again. The caller has locked the tenants.
CREATE OR REPLACE FUNCTION settle_expired(p_tenant_id text[], p_request_id text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF cardinality(p_request_id) > 0 THEN
    UPDATE claim SET settled = true
      WHERE tenant_id = ANY (p_tenant_id) AND request_id = ANY (p_request_id) AND NOT settled;
  END IF;
END
$$;

-- end_holds for settlements of which some have a claim ('': none).
CREATE OR REPLACE FUNCTION settle_claims(
  p_now_ms bigint,
  p_id text[], p_tenant_id text[], p_cost_nanos bigint[], p_tokens bigint[], p_month int[], p_record text[],
  p_claim text[], p_answer text[], p_max_chars bigint)
RETURNS TABLE (n bigint, code text, record text)
LANGUAGE plpgsql AS $$
DECLARE
  v_now_us bigint := locked_us(p_now_ms, p_tenant_id);
BEGIN
  FOR n, code, record IN
    SELECT e.n, e.code, e.record
    FROM end_holds(v_now_us, p_id, p_tenant_id, p_cost_nanos, p_tokens, p_month, p_record) e
  LOOP
    IF code = 'settled' AND p_claim[n] <> '' THEN
      PERFORM settle_claim(p_tenant_id[n], p_claim[n], p_id[n], p_answer[n], p_max_chars);
    END IF;
    RETURN NEXT;
  END LOOP;
END
$$;

-- The claims that are taken or settled. code: 'running' or 'settled'. Free ones have no row. The length of an answer,
-- which is ASCII, is known without reading it. (plpgsql, because functions of this language may name those of files
-- that are applied later.)
CREATE OR REPLACE FUNCTION recall_batch(p_now_ms bigint, p_keep_ms bigint, p_tenant_id text[], p_claim text[])
RETURNS TABLE (n bigint, code text, fingerprint text, age_ms bigint, answer_chars bigint)
LANGUAGE plpgsql AS $$
DECLARE
  v_now_ms bigint := now_us(p_now_ms) / 1000;
BEGIN
  RETURN QUERY
    SELECT a.n, CASE WHEN c.settled THEN 'settled' ELSE 'running' END, c.fingerprint,
      greatest(0, v_now_ms - c.created_ms), octet_length(c.answer)::bigint
    FROM unnest(p_tenant_id, p_claim) WITH ORDINALITY AS a (tenant_id, claim, n),
      LATERAL (SELECT o.* FROM claim o WHERE o.tenant_id = a.tenant_id AND o.id = a.claim LIMIT 1) c
    WHERE CASE
      WHEN c.settled THEN c.created_ms > v_now_ms - p_keep_ms
      ELSE EXISTS (SELECT FROM hold h WHERE h.id = c.request_id AND h.state = 'pending') END;
END
$$;

-- The answers of settled claims, whatever their age: `recall_batch` found them a moment ago. A claim without an answer,
-- or that another body has taken since, has no row.
CREATE OR REPLACE FUNCTION claim_answers(p_tenant_id text[], p_claim text[], p_fingerprint text[])
RETURNS TABLE (n bigint, answer text)
LANGUAGE sql STABLE AS $$
  SELECT a.n, c.answer
  FROM unnest(p_tenant_id, p_claim, p_fingerprint) WITH ORDINALITY AS a (tenant_id, claim, fingerprint, n),
    LATERAL (SELECT o.* FROM claim o WHERE o.tenant_id = a.tenant_id AND o.id = a.claim LIMIT 1) c
  WHERE c.settled AND c.fingerprint = a.fingerprint AND c.answer IS NOT NULL
$$;

-- Deletes claims that are older than p_keep_ms, at most p_limit: those that idle tenants have left.
CREATE OR REPLACE FUNCTION forget_claims(p_now_ms bigint, p_keep_ms bigint, p_limit bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  v_before_ms bigint := now_us(p_now_ms) / 1000 - p_keep_ms;
  v_tenants text[] := array(
    SELECT DISTINCT o.tenant_id FROM (
      SELECT c.tenant_id FROM claim c WHERE c.created_ms <= v_before_ms ORDER BY c.created_ms LIMIT p_limit) o);
  v_tenant text;
BEGIN
  IF cardinality(v_tenants) = 0 THEN
    RETURN;
  END IF;
  PERFORM lock_tenants(v_tenants);
  FOREACH v_tenant IN ARRAY v_tenants LOOP
    PERFORM forget_oldest(now_us(p_now_ms) / 1000, p_keep_ms, 9223372036854775807, p_limit, v_tenant);
  END LOOP;
END
$$;
