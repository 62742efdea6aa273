-- The schema "admission" as the version before 2026-11-23 left it: its numbered migrations in one, without comments and without functions
-- that a later one of them replaced. For tests of the upgrade; what is in force is in libs/admission/src/postgres.
CREATE TABLE schema_migration (
  number int PRIMARY KEY, name text NOT NULL, checksum text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now());
CREATE TABLE tenant (
  tenant_id text COLLATE "C" PRIMARY KEY,
  version bigint NOT NULL DEFAULT 0,
  balance_nanos bigint NOT NULL DEFAULT 0,
  suspended boolean NOT NULL DEFAULT false,
  settled_nanos bigint NOT NULL DEFAULT 0 CHECK (settled_nanos >= 0),
  pending_nanos bigint NOT NULL DEFAULT 0 CHECK (pending_nanos >= 0),
  in_flight bigint NOT NULL DEFAULT 0 CHECK (in_flight >= 0),
  month int NOT NULL DEFAULT 0,
  spent_nanos bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);
CREATE TABLE key_state (
  tenant_id text COLLATE "C",
  key_id text COLLATE "C",
  pending_nanos bigint NOT NULL DEFAULT 0 CHECK (pending_nanos >= 0),
  in_flight bigint NOT NULL DEFAULT 0 CHECK (in_flight >= 0),
  month int NOT NULL DEFAULT 0,
  spent_nanos bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (tenant_id, key_id)
) WITH (fillfactor = 50);
CREATE UNLOGGED TABLE bucket (
  tenant_id text COLLATE "C",
  key_id text COLLATE "C",
  requests_full_us bigint NOT NULL,
  tokens_full_us bigint NOT NULL,
  PRIMARY KEY (tenant_id, key_id)
) WITH (fillfactor = 50);
CREATE TABLE hold (
  id text COLLATE "C" PRIMARY KEY,
  tenant_id text COLLATE "C" NOT NULL,
  key_id text COLLATE "C" NOT NULL,
  state text NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'settled')),
  hold_nanos bigint NOT NULL,
  cost_nanos bigint CHECK (cost_nanos BETWEEN 0 AND hold_nanos),
  output_tokens bigint NOT NULL,
  hold_tokens bigint NOT NULL,
  key_tokens_per_minute bigint NOT NULL,
  tenant_tokens_per_minute bigint NOT NULL,
  key_budget_nanos bigint,
  tenant_budget_nanos bigint,
  deadline_ms bigint NOT NULL,
  delivered jsonb,
  progressed_ms bigint NOT NULL,
  unconfirmed_since_ms bigint,
  record json NOT NULL
) WITH (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX hold_pending ON hold (id) WHERE state = 'pending';
CREATE INDEX hold_unconfirmed ON hold (unconfirmed_since_ms) WHERE state = 'settled';
CREATE FUNCTION now_us(p_now_ms bigint) RETURNS bigint LANGUAGE sql VOLATILE AS $$
  SELECT CASE WHEN p_now_ms IS NULL THEN (extract(epoch FROM clock_timestamp()) * 1000000)::bigint ELSE p_now_ms * 1000 END
$$;
CREATE FUNCTION month_of(p_now_us bigint) RETURNS int LANGUAGE sql STABLE AS $$
  SELECT (extract(year FROM d) * 12 + extract(month FROM d) - 1)::int FROM (SELECT to_timestamp(p_now_us / 1000000) AT TIME ZONE 'UTC' AS d)
$$;
CREATE FUNCTION bucket_us(p_amount bigint, p_per_minute bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
  SELECT least(p_amount, p_per_minute) * 60000000 / p_per_minute
$$;
CREATE FUNCTION afford(p_nanos bigint, p_prompt_femtos numeric, p_output_femtos numeric) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE
    WHEN p_nanos::numeric * 1000000 < p_prompt_femtos THEN -1
    WHEN p_output_femtos = 0 THEN 9223372036854775807
    ELSE least(div(p_nanos::numeric * 1000000 - p_prompt_femtos, p_output_femtos), 9223372036854775807)
  END::bigint
$$;
CREATE FUNCTION lock_tenants(p_tenant_ids text[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  v_ids text[] := array(SELECT DISTINCT u COLLATE "C" FROM unnest(p_tenant_ids) u ORDER BY 1);
BEGIN
  IF (SELECT count(*) FROM tenant WHERE tenant_id = ANY (v_ids)) < cardinality(v_ids) THEN
    INSERT INTO tenant (tenant_id) SELECT u FROM unnest(v_ids) WITH ORDINALITY AS w (u, n) ORDER BY n ON CONFLICT DO NOTHING;
  END IF;
  PERFORM FROM tenant WHERE tenant_id = ANY (v_ids) ORDER BY tenant_id FOR UPDATE;
END
$$;
CREATE FUNCTION progress(p_now_ms bigint, p_lease_ms bigint, p_id text[], p_tenant_id text[], p_delivered text[]) RETURNS SETOF bigint
LANGUAGE plpgsql AS $$
DECLARE
  v_now_ms bigint;
  r record;
BEGIN
  PERFORM lock_tenants(p_tenant_id);
  v_now_ms := now_us(p_now_ms) / 1000;
  FOR r IN SELECT * FROM unnest(p_id, p_tenant_id, p_delivered) WITH ORDINALITY AS a (id, tenant_id, delivered, n) LOOP
    UPDATE hold o SET deadline_ms = v_now_ms + p_lease_ms, progressed_ms = v_now_ms, delivered = coalesce(r.delivered::jsonb, o.delivered)
      WHERE o.id = r.id AND o.tenant_id = r.tenant_id AND o.state = 'pending';
    IF FOUND THEN
      RETURN NEXT r.n;
    END IF;
  END LOOP;
END
$$;
CREATE FUNCTION settle(p_now_ms bigint, p_id text[], p_tenant_id text[], p_cost_nanos bigint[], p_tokens bigint[], p_month int[], p_record text[])
RETURNS TABLE (n bigint, code text, record text)
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM lock_tenants(p_tenant_id);
  RETURN QUERY SELECT * FROM end_holds(now_us(p_now_ms), p_id, p_tenant_id, p_cost_nanos, p_tokens, p_month, p_record);
END
$$;
CREATE FUNCTION void_holds(p_now_ms bigint, p_id text[], p_tenant_id text[]) RETURNS SETOF bigint
LANGUAGE plpgsql AS $$
DECLARE
  v_nothing bigint[] := array_fill(NULL::bigint, ARRAY[cardinality(p_id)]);
  v_zero bigint[] := array_fill(0::bigint, ARRAY[cardinality(p_id)]);
BEGIN
  PERFORM lock_tenants(p_tenant_id);
  RETURN QUERY SELECT e.n FROM end_holds(now_us(p_now_ms), p_id, p_tenant_id, v_nothing, v_zero, v_nothing::int[], v_nothing::text[]) e WHERE e.code = 'void';
END
$$;
CREATE TABLE withdrawal (
  tenant_id text COLLATE "C",
  version bigint,
  nanos bigint NOT NULL CHECK (nanos > 0),
  PRIMARY KEY (tenant_id, version)
);
CREATE FUNCTION withdraw(p_tenant_id text, p_version bigint, p_nanos bigint) RETURNS TABLE (code text, available_nanos bigint)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  t record;
BEGIN
  PERFORM lock_tenants(ARRAY[p_tenant_id]);
  SELECT s.version, s.balance_nanos - s.settled_nanos - s.pending_nanos + coalesce(w.nanos, 0) AS available_nanos, coalesce(w.nanos, 0) AS first_nanos
    INTO t FROM tenant s LEFT JOIN withdrawal w ON w.tenant_id = s.tenant_id AND w.version = p_version WHERE s.tenant_id = p_tenant_id;
  available_nanos := t.available_nanos;
  IF t.version >= p_version THEN
    code := 'overtaken';
  ELSIF t.available_nanos < p_nanos THEN
    code := 'refused';
  ELSE
    code := 'withdrawn';
    INSERT INTO withdrawal (tenant_id, version, nanos) VALUES (p_tenant_id, p_version, p_nanos)
      ON CONFLICT (tenant_id, version) DO UPDATE SET nanos = excluded.nanos;
    UPDATE tenant s SET balance_nanos = s.balance_nanos + t.first_nanos - p_nanos WHERE s.tenant_id = p_tenant_id;
  END IF;
  RETURN NEXT;
END
$$;
CREATE OR REPLACE FUNCTION apply_news(
  p_tenant_id text[], p_version bigint[], p_balance_nanos bigint[], p_suspended boolean[], p_release_tenant_id text[], p_release_id text[])
RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  r record;
  v_released bigint;
  v_withdrawn bigint := 0;
  v_any_withdrawn boolean;
BEGIN
  PERFORM lock_tenants(p_tenant_id);
  v_any_withdrawn := EXISTS (SELECT FROM withdrawal WHERE tenant_id = ANY (p_tenant_id));
  FOR r IN SELECT * FROM unnest(p_tenant_id, p_version, p_balance_nanos, p_suspended) AS a (tenant_id, version, balance_nanos, suspended) LOOP
    IF v_any_withdrawn THEN
      SELECT coalesce(sum(nanos), 0) INTO v_withdrawn FROM withdrawal w WHERE w.tenant_id = r.tenant_id AND w.version > r.version;
    END IF;
    UPDATE tenant t SET version = r.version, balance_nanos = r.balance_nanos - v_withdrawn, suspended = r.suspended
      WHERE t.tenant_id = r.tenant_id AND t.version < r.version;
    IF v_any_withdrawn THEN
      DELETE FROM withdrawal w WHERE w.tenant_id = r.tenant_id AND w.version <= r.version;
    END IF;
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
ALTER TABLE tenant ADD COLUMN budget_nanos bigint, ADD COLUMN budget_version bigint NOT NULL DEFAULT 0;
ALTER TABLE key_state ADD COLUMN budget_nanos bigint, ADD COLUMN budget_version bigint NOT NULL DEFAULT 0;
CREATE FUNCTION apply_budgets(p_tenant_id text[], p_key_id text[], p_version bigint[], p_nanos bigint[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  r record;
BEGIN
  PERFORM lock_tenants(p_tenant_id);
  FOR r IN SELECT * FROM unnest(p_tenant_id, p_key_id, p_version, p_nanos) AS a (tenant_id, key_id, version, nanos) LOOP
    IF r.key_id = '' THEN
      UPDATE tenant t SET budget_nanos = r.nanos, budget_version = r.version WHERE t.tenant_id = r.tenant_id AND t.budget_version < r.version;
    ELSE
      INSERT INTO key_state AS k (tenant_id, key_id, budget_nanos, budget_version) VALUES (r.tenant_id, r.key_id, r.nanos, r.version)
        ON CONFLICT (tenant_id, key_id) DO UPDATE SET budget_nanos = excluded.budget_nanos, budget_version = excluded.budget_version
        WHERE k.budget_version < excluded.budget_version;
    END IF;
  END LOOP;
END
$$;
CREATE OR REPLACE FUNCTION extend(p_now_ms bigint, p_id text[], p_tenant_id text[], p_want_nanos bigint[], p_min_nanos bigint[])
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
    SELECT * FROM unnest(p_id, p_tenant_id, p_want_nanos, p_min_nanos) WITH ORDINALITY AS a (id, tenant_id, want_nanos, min_nanos, n)
    ORDER BY a.tenant_id COLLATE "C", a.n
  LOOP
    n := r.n;
    granted_nanos := 0;
    SELECT o.hold_nanos, o.key_id, least(
        t.balance_nanos - t.settled_nanos - t.pending_nanos,
        coalesce(t.budget_nanos, o.tenant_budget_nanos) - t.pending_nanos - CASE WHEN t.month >= v_month THEN t.spent_nanos ELSE 0 END,
        coalesce(k.budget_nanos, o.key_budget_nanos) - k.pending_nanos - CASE WHEN k.month >= v_month THEN k.spent_nanos ELSE 0 END) AS available_nanos
      INTO h FROM hold o JOIN tenant t ON t.tenant_id = o.tenant_id JOIN key_state k ON k.tenant_id = o.tenant_id AND k.key_id = o.key_id
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
      UPDATE key_state s SET pending_nanos = s.pending_nanos + granted_nanos WHERE s.tenant_id = r.tenant_id AND s.key_id = h.key_id;
    END IF;
    RETURN NEXT;
  END LOOP;
END
$$;
ALTER TABLE hold ADD COLUMN admitted_ms bigint;
ALTER TABLE tenant ADD COLUMN hold_mean_ms bigint NOT NULL DEFAULT 0;
CREATE FUNCTION next_mean_ms(p_mean_ms bigint, p_length_ms bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN p_mean_ms = 0 THEN p_length_ms ELSE (p_mean_ms * 7 + p_length_ms) / 8 END
$$;
CREATE FUNCTION passing_ms(p_mean_ms bigint, p_in_flight bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
  SELECT least(60000, greatest(1000, p_mean_ms / greatest(1, p_in_flight)))
$$;
CREATE INDEX hold_tenant ON hold (tenant_id, id);
ALTER TABLE bucket ADD COLUMN written_us bigint NOT NULL DEFAULT 0;
CREATE FUNCTION ahead_us(p_written_us bigint, p_requests_full_us bigint, p_now_us bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
  SELECT greatest(0, p_written_us - p_now_us, p_requests_full_us - 60000000 - p_now_us)
$$;
CREATE FUNCTION set_bucket(p_tenant_id text, p_key_id text, p_requests_us bigint, p_tokens_us bigint, p_now_us bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  UPDATE bucket SET requests_full_us = p_requests_us, tokens_full_us = p_tokens_us, written_us = p_now_us WHERE tenant_id = p_tenant_id AND key_id = p_key_id;
  IF NOT FOUND THEN
    INSERT INTO bucket (tenant_id, key_id, requests_full_us, tokens_full_us, written_us) VALUES (p_tenant_id, p_key_id, p_requests_us, p_tokens_us, p_now_us);
  END IF;
END
$$;
CREATE OR REPLACE FUNCTION correct_tokens(p_tenant_id text, p_key_id text, p_now_us bigint, p_by_us bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF p_by_us <> 0 THEN
    UPDATE bucket SET requests_full_us = requests_full_us - ahead_us(written_us, requests_full_us, p_now_us),
        tokens_full_us = greatest(tokens_full_us - ahead_us(written_us, requests_full_us, p_now_us), p_now_us) + p_by_us,
        written_us = p_now_us
      WHERE tenant_id = p_tenant_id AND key_id = p_key_id;
  END IF;
END
$$;
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
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  MINUTE_US constant bigint := 60000000;
  v_now_us bigint;
  v_full_us bigint;
  v_month int;
  v_repeats boolean;
  r record;
  h record;
  t record;
  t_id text;
  t_changed boolean;
  k record;
  k_id text;
  k_changed boolean;
  v_key_requests_us bigint;
  v_tenant_requests_us bigint;
  v_key_tokens_us bigint;
  v_tenant_tokens_us bigint;
  v_credit bigint;
  v_key_unspent bigint;
  v_tenant_unspent bigint;
  v_key_budget bigint;
  v_tenant_budget bigint;
  v_money text;
  v_money_scope text;
  v_target bigint;
  v_least bigint;
  v_nanos bigint[] := array_fill(NULL::bigint, ARRAY[cardinality(p_id)]);
  v_tokens bigint[] := array_fill(NULL::bigint, ARRAY[cardinality(p_id)]);
BEGIN
  PERFORM lock_tenants(p_tenant_id);
  v_now_us := now_us(p_now_ms);
  v_full_us := v_now_us + MINUTE_US;
  v_month := month_of(v_now_us);
  v_repeats := EXISTS (SELECT FROM hold WHERE id = ANY (p_id));
  FOR r IN
    SELECT a.*, lead(a.tenant_id) OVER w AS next_tenant_id, lead(a.key_id) OVER w AS next_key_id
    FROM unnest(
        p_id, p_tenant_id, p_key_id, p_draft, p_key_requests, p_key_tokens, p_key_concurrency, p_tenant_requests, p_tenant_tokens, p_tenant_concurrency,
        p_key_budget_nanos, p_tenant_budget_nanos, p_prompt_tokens, p_prompt_femtos, p_output_femtos, p_want_tokens, p_min_tokens, p_bound_is_exact, p_want_nanos, p_least_nanos)
      WITH ORDINALITY AS a (
        id, tenant_id, key_id, draft, key_requests, key_tokens, key_concurrency, tenant_requests, tenant_tokens, tenant_concurrency,
        key_budget, tenant_budget, prompt_tokens, prompt_femtos, output_femtos, want_tokens, min_tokens, bound_is_exact, want_nanos, least_nanos, n)
    WINDOW w AS (ORDER BY a.tenant_id COLLATE "C", a.n)
    ORDER BY a.tenant_id COLLATE "C", a.n
  LOOP
    IF r.tenant_id IS DISTINCT FROM t_id THEN
      SELECT s.balance_nanos - s.settled_nanos AS spendable, s.pending_nanos, s.in_flight, s.hold_mean_ms, s.suspended, s.budget_nanos,
          CASE WHEN s.month >= v_month THEN s.spent_nanos ELSE 0 END AS spent_nanos,
          greatest(b.requests_full_us - ahead_us(b.written_us, b.requests_full_us, v_now_us), v_now_us) AS requests_us,
          greatest(b.tokens_full_us - ahead_us(b.written_us, b.requests_full_us, v_now_us), v_now_us) AS tokens_us,
          coalesce(ahead_us(b.written_us, b.requests_full_us, v_now_us) > 0, false) AS is_ahead
        INTO t FROM tenant s LEFT JOIN bucket b ON b.tenant_id = s.tenant_id AND b.key_id = '' WHERE s.tenant_id = r.tenant_id;
      t_id := r.tenant_id;
      t_changed := t.is_ahead;
      k_id := NULL;
    END IF;
    IF r.key_id IS DISTINCT FROM k_id THEN
      SELECT coalesce(s.pending_nanos, 0) AS pending_nanos, coalesce(s.in_flight, 0) AS in_flight, s.budget_nanos,
          CASE WHEN s.month >= v_month THEN s.spent_nanos ELSE 0 END AS spent_nanos,
          greatest(b.requests_full_us - ahead_us(b.written_us, b.requests_full_us, v_now_us), v_now_us) AS requests_us,
          greatest(b.tokens_full_us - ahead_us(b.written_us, b.requests_full_us, v_now_us), v_now_us) AS tokens_us,
          coalesce(ahead_us(b.written_us, b.requests_full_us, v_now_us) > 0, false) AS is_ahead
        INTO k FROM (SELECT 1) one
        LEFT JOIN key_state s ON s.tenant_id = r.tenant_id AND s.key_id = r.key_id
        LEFT JOIN bucket b ON b.tenant_id = r.tenant_id AND b.key_id = r.key_id;
      k_id := r.key_id;
      k_changed := k.is_ahead;
    END IF;
    n := r.n;
    code := NULL;
    scope := NULL;
    retry_ms := NULL;
    granted_nanos := NULL;
    granted_tokens := NULL;
    IF v_repeats THEN
      SELECT o.* INTO h FROM hold o WHERE o.id = r.id;
      IF FOUND THEN
        code := CASE WHEN h.state = 'pending' AND h.tenant_id = r.tenant_id AND h.key_id = r.key_id THEN 'held' ELSE 'id_used' END;
        granted_nanos := h.hold_nanos;
        granted_tokens := h.output_tokens;
      END IF;
    END IF;
    IF code IS NULL THEN
      v_credit := t.spendable - t.pending_nanos;
      v_key_unspent := coalesce(k.budget_nanos, r.key_budget) - k.spent_nanos;
      v_tenant_unspent := coalesce(t.budget_nanos, r.tenant_budget) - t.spent_nanos;
      v_key_budget := v_key_unspent - k.pending_nanos;
      v_tenant_budget := v_tenant_unspent - t.pending_nanos;
      v_money := NULL;
      v_money_scope := 'tenant';
      IF r.want_nanos = 0 OR r.want_nanos <= least(v_credit, v_key_budget, v_tenant_budget) THEN
        granted_tokens := r.want_tokens;
        granted_nanos := r.want_nanos;
      ELSIF NOT r.bound_is_exact THEN
        v_money := 'bound';
      ELSIF r.least_nanos > v_key_unspent THEN
        v_money := 'budget_reached';
        v_money_scope := 'key';
      ELSIF r.least_nanos > v_tenant_unspent THEN
        v_money := 'budget_reached';
      ELSIF r.least_nanos > t.spendable THEN
        v_money := 'credit_exhausted';
      ELSE
        v_target := least(r.want_tokens, afford(least(t.spendable, v_key_unspent, v_tenant_unspent), r.prompt_femtos, r.output_femtos));
        v_least := least(r.min_tokens, v_target);
        granted_tokens := least(v_target, afford(least(v_credit, v_key_budget, v_tenant_budget), r.prompt_femtos, r.output_femtos));
        IF granted_tokens < v_least THEN
          v_money := 'credit_held';
          IF afford(v_key_budget, r.prompt_femtos, r.output_femtos) < v_least THEN
            v_money_scope := 'key';
          END IF;
        ELSE
          granted_nanos := div(r.prompt_femtos + granted_tokens * r.output_femtos + 999999, 1000000);
        END IF;
      END IF;
      v_key_requests_us := k.requests_us + bucket_us(1, r.key_requests);
      v_tenant_requests_us := t.requests_us + bucket_us(1, r.tenant_requests);
      v_key_tokens_us := k.tokens_us + bucket_us(r.prompt_tokens + CASE WHEN v_money IS NULL THEN granted_tokens ELSE r.want_tokens END, r.key_tokens);
      v_tenant_tokens_us := t.tokens_us + bucket_us(r.prompt_tokens + CASE WHEN v_money IS NULL THEN granted_tokens ELSE r.want_tokens END, r.tenant_tokens);
      IF t.suspended THEN
        code := 'tenant_suspended';
        scope := 'tenant';
      ELSIF greatest(v_key_requests_us, v_tenant_requests_us, v_key_tokens_us, v_tenant_tokens_us) > v_full_us THEN
        code := CASE WHEN greatest(v_key_requests_us, v_tenant_requests_us) > v_full_us THEN 'requests' ELSE 'tokens' END;
        scope := CASE WHEN (code = 'requests' AND v_key_requests_us > v_full_us) OR (code = 'tokens' AND v_key_tokens_us > v_full_us) THEN 'key' ELSE 'tenant' END;
        retry_ms := (greatest(v_key_requests_us, v_tenant_requests_us, v_key_tokens_us, v_tenant_tokens_us) - v_full_us + 999) / 1000;
      ELSIF k.in_flight >= r.key_concurrency OR t.in_flight >= r.tenant_concurrency THEN
        code := 'concurrency';
        scope := CASE WHEN k.in_flight >= r.key_concurrency THEN 'key' ELSE 'tenant' END;
        retry_ms := passing_ms(t.hold_mean_ms, CASE WHEN scope = 'key' THEN k.in_flight ELSE t.in_flight END);
      ELSIF v_money IS NOT NULL THEN
        code := v_money;
        scope := v_money_scope;
        retry_ms := CASE WHEN v_money = 'credit_held' THEN passing_ms(t.hold_mean_ms, CASE WHEN scope = 'key' THEN k.in_flight ELSE t.in_flight END) END;
      ELSE
        v_nanos[r.n] := granted_nanos;
        v_tokens[r.n] := granted_tokens;
        code := 'held';
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
    requests_left := floor(greatest(v_full_us - k.requests_us, 0)::float8 * r.key_requests / MINUTE_US);
    requests_reset_ms := (k.requests_us - v_now_us + 999) / 1000;
    tokens_left := floor(greatest(v_full_us - k.tokens_us, 0)::float8 * r.key_tokens / MINUTE_US);
    tokens_reset_ms := (k.tokens_us - v_now_us + 999) / 1000;
    RETURN NEXT;
    IF k_changed AND (r.next_key_id, r.next_tenant_id) IS DISTINCT FROM (r.key_id, r.tenant_id) THEN
      UPDATE key_state s SET pending_nanos = k.pending_nanos, in_flight = k.in_flight WHERE s.tenant_id = t_id AND s.key_id = k_id;
      IF NOT FOUND THEN
        INSERT INTO key_state (tenant_id, key_id, pending_nanos, in_flight) VALUES (t_id, k_id, k.pending_nanos, k.in_flight);
      END IF;
      PERFORM set_bucket(t_id, k_id, k.requests_us, k.tokens_us, v_now_us);
    END IF;
    IF t_changed AND r.next_tenant_id IS DISTINCT FROM r.tenant_id THEN
      UPDATE tenant s SET pending_nanos = t.pending_nanos, in_flight = t.in_flight WHERE s.tenant_id = t_id;
      PERFORM set_bucket(t_id, '', t.requests_us, t.tokens_us, v_now_us);
    END IF;
  END LOOP;
  INSERT INTO hold (
      id, tenant_id, key_id, hold_nanos, output_tokens, hold_tokens, key_tokens_per_minute, tenant_tokens_per_minute,
      key_budget_nanos, tenant_budget_nanos, deadline_ms, progressed_ms, admitted_ms, record)
    SELECT
      a.id, a.tenant_id, a.key_id, a.nanos, a.tokens, a.prompt_tokens + a.tokens, a.key_tokens, a.tenant_tokens,
      a.key_budget, a.tenant_budget, v_now_us / 1000 + p_lease_ms, v_now_us / 1000, v_now_us / 1000, a.draft::json
    FROM unnest(p_id, p_tenant_id, p_key_id, p_draft, p_key_tokens, p_tenant_tokens, p_key_budget_nanos, p_tenant_budget_nanos, p_prompt_tokens, v_nanos, v_tokens)
      AS a (id, tenant_id, key_id, draft, key_tokens, tenant_tokens, key_budget, tenant_budget, prompt_tokens, nanos, tokens)
    WHERE a.nanos IS NOT NULL;
END
$$;
CREATE OR REPLACE FUNCTION end_holds(p_now_us bigint, p_id text[], p_tenant_id text[], p_cost_nanos bigint[], p_tokens bigint[], p_month int[], p_record text[])
RETURNS TABLE (n bigint, code text, record text)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  LONGEST_HOLD_MS constant bigint := 3600000;
  v_month int := month_of(p_now_us);
  r record;
  v_ends boolean;
  v_void text[] := '{}';
  v_settled text[] := '{}';
  v_costs bigint[] := '{}';
  v_records text[] := '{}';
  v_count bigint;
  t_held bigint := 0;
  t_settled bigint := 0;
  t_spent bigint := 0;
  t_count bigint := 0;
  t_us bigint := 0;
  t_length_ms bigint := 0;
  k_held bigint := 0;
  k_spent bigint := 0;
  k_count bigint := 0;
  k_us bigint := 0;
BEGIN
  FOR r IN
    SELECT a.*, h.key_id, h.state, h.hold_nanos, h.hold_tokens, h.key_tokens_per_minute, h.tenant_tokens_per_minute, h.admitted_ms, h.record AS standing,
      lead(a.tenant_id) OVER w AS next_tenant_id, lead(h.key_id) OVER w AS next_key_id
    FROM unnest(p_id, p_tenant_id, p_cost_nanos, p_tokens, p_month, p_record) WITH ORDINALITY AS a (id, tenant_id, cost_nanos, tokens, month, record, n)
    LEFT JOIN LATERAL (SELECT o.* FROM hold o WHERE o.id = a.id AND o.tenant_id = a.tenant_id LIMIT 1) h ON true
    WINDOW w AS (ORDER BY a.tenant_id COLLATE "C", h.key_id, a.n)
    ORDER BY a.tenant_id COLLATE "C", h.key_id, a.n
  LOOP
    n := r.n;
    record := NULL;
    v_ends := false;
    IF r.state IS NULL THEN
      code := 'forbidden';
    ELSIF r.state = 'settled' THEN
      code := CASE WHEN r.cost_nanos IS NULL THEN 'forbidden' ELSE 'repeated' END;
      record := r.standing;
    ELSIF r.cost_nanos > r.hold_nanos THEN
      code := 'over_hold';
    ELSIF r.cost_nanos IS NULL THEN
      code := 'void';
      v_ends := true;
      v_void := v_void || r.id;
    ELSE
      code := 'settled';
      v_ends := true;
      v_settled := v_settled || r.id;
      v_costs := v_costs || r.cost_nanos;
      v_records := v_records || r.record;
    END IF;
    RETURN NEXT;
    IF v_ends THEN
      k_held := k_held + r.hold_nanos;
      k_count := k_count + 1;
      k_us := k_us + bucket_us(r.tokens, r.key_tokens_per_minute) - bucket_us(r.hold_tokens, r.key_tokens_per_minute);
      t_us := t_us + bucket_us(r.tokens, r.tenant_tokens_per_minute) - bucket_us(r.hold_tokens, r.tenant_tokens_per_minute);
      t_length_ms := t_length_ms + least(LONGEST_HOLD_MS, greatest(0, p_now_us / 1000 - coalesce(r.admitted_ms, p_now_us / 1000)));
      IF r.cost_nanos IS NOT NULL THEN
        t_settled := t_settled + r.cost_nanos;
        IF r.month >= v_month THEN
          k_spent := k_spent + r.cost_nanos;
        END IF;
      END IF;
    END IF;
    IF k_count > 0 AND (r.next_key_id, r.next_tenant_id) IS DISTINCT FROM (r.key_id, r.tenant_id) THEN
      UPDATE key_state s SET pending_nanos = s.pending_nanos - k_held, in_flight = s.in_flight - k_count,
          spent_nanos = k_spent + CASE WHEN s.month >= v_month THEN s.spent_nanos ELSE 0 END, month = v_month
        WHERE s.tenant_id = r.tenant_id AND s.key_id = r.key_id;
      PERFORM correct_tokens(r.tenant_id, r.key_id, p_now_us, k_us);
      t_held := t_held + k_held;
      t_count := t_count + k_count;
      t_spent := t_spent + k_spent;
      k_held := 0;
      k_count := 0;
      k_spent := 0;
      k_us := 0;
    END IF;
    IF t_count > 0 AND r.next_tenant_id IS DISTINCT FROM r.tenant_id THEN
      UPDATE tenant s SET pending_nanos = s.pending_nanos - t_held, settled_nanos = s.settled_nanos + t_settled, in_flight = s.in_flight - t_count,
          hold_mean_ms = next_mean_ms(s.hold_mean_ms, t_length_ms / t_count),
          spent_nanos = t_spent + CASE WHEN s.month >= v_month THEN s.spent_nanos ELSE 0 END, month = v_month
        WHERE s.tenant_id = r.tenant_id;
      PERFORM correct_tokens(r.tenant_id, '', p_now_us, t_us);
      t_held := 0;
      t_settled := 0;
      t_spent := 0;
      t_count := 0;
      t_us := 0;
      t_length_ms := 0;
    END IF;
  END LOOP;
  IF v_settled <> '{}' THEN
    UPDATE hold o SET state = 'settled', cost_nanos = v_costs[array_position(v_settled, o.id)], record = v_records[array_position(v_settled, o.id)]::json,
        delivered = NULL, unconfirmed_since_ms = p_now_us / 1000
      WHERE o.id = ANY (v_settled) AND o.state = 'pending';
    GET DIAGNOSTICS v_count = ROW_COUNT;
    IF v_count <> cardinality(v_settled) THEN
      RAISE EXCEPTION 'an id twice in one call, or a tenant that is not locked';
    END IF;
  END IF;
  IF v_void <> '{}' THEN
    DELETE FROM hold o WHERE o.id = ANY (v_void) AND o.state = 'pending';
    GET DIAGNOSTICS v_count = ROW_COUNT;
    IF v_count <> cardinality(v_void) THEN
      RAISE EXCEPTION 'an id twice in one call, or a tenant that is not locked';
    END IF;
  END IF;
END
$$;
CREATE OR REPLACE FUNCTION sweep(p_now_ms bigint, p_limit int, p_confirm_after_ms bigint) RETURNS SETOF text
LANGUAGE plpgsql AS $$
DECLARE
  v_now_us bigint := now_us(p_now_ms);
  v_ids text[] := array(
    SELECT id FROM hold WHERE state = 'pending' AND (deadline_ms <= v_now_us / 1000 OR progressed_ms > v_now_us / 1000) LIMIT p_limit);
  e record;
BEGIN
  IF cardinality(v_ids) > 0 THEN
    PERFORM lock_tenants(array(SELECT tenant_id FROM hold WHERE id = ANY (v_ids)));
    v_now_us := now_us(p_now_ms);
    UPDATE hold SET deadline_ms = v_now_us / 1000 + deadline_ms - progressed_ms, progressed_ms = v_now_us / 1000
      WHERE id = ANY (v_ids) AND state = 'pending' AND progressed_ms > v_now_us / 1000;
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
    IF e.ids IS NOT NULL THEN
      RETURN QUERY SELECT e.records[d.n] FROM end_holds(v_now_us, e.ids, e.tenant_ids, e.costs, e.tokens, e.months, e.records) d WHERE d.code = 'settled';
    END IF;
  END IF;
  UPDATE hold SET unconfirmed_since_ms = v_now_us / 1000
    WHERE id = ANY (array(
      SELECT id FROM hold WHERE state = 'settled' AND unconfirmed_since_ms > v_now_us / 1000
      ORDER BY unconfirmed_since_ms LIMIT p_limit FOR UPDATE SKIP LOCKED));
  RETURN QUERY UPDATE hold SET unconfirmed_since_ms = v_now_us / 1000
    WHERE id = ANY (array(
      SELECT id FROM hold
      WHERE state = 'settled' AND unconfirmed_since_ms <= v_now_us / 1000 - p_confirm_after_ms AND id <> ALL (v_ids)
      ORDER BY unconfirmed_since_ms LIMIT p_limit FOR UPDATE SKIP LOCKED))
    RETURNING hold.record::text;
END
$$;
CREATE TABLE write_probe (at timestamptz NOT NULL);
CREATE FUNCTION probe_write() RETURNS timestamptz LANGUAGE plpgsql AS $$
DECLARE
  v_at timestamptz := clock_timestamp();
BEGIN
  BEGIN
    LOCK TABLE write_probe IN ACCESS EXCLUSIVE MODE NOWAIT;
    TRUNCATE write_probe;
  EXCEPTION WHEN lock_not_available THEN
    NULL;
  END;
  INSERT INTO write_probe (at) VALUES (v_at);
  RETURN v_at;
END
$$;
CREATE FUNCTION look(
  p_now_ms bigint,
  p_tenant_id text[], p_key_id text[],
  p_key_requests bigint[], p_key_tokens bigint[], p_key_concurrency bigint[],
  p_tenant_requests bigint[], p_tenant_tokens bigint[], p_tenant_concurrency bigint[],
  p_key_budget_nanos bigint[], p_tenant_budget_nanos bigint[], p_is_paid boolean[])
RETURNS TABLE (
  n bigint, code text, scope text, retry_ms bigint,
  requests_left bigint, requests_reset_ms bigint, tokens_left bigint, tokens_reset_ms bigint)
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
  v_key_requests_us bigint;
  v_tenant_requests_us bigint;
  v_key_tokens_us bigint;
  v_tenant_tokens_us bigint;
  v_key_unspent bigint;
  v_tenant_unspent bigint;
BEGIN
  FOR r IN
    SELECT * FROM unnest(
        p_tenant_id, p_key_id, p_key_requests, p_key_tokens, p_key_concurrency, p_tenant_requests, p_tenant_tokens, p_tenant_concurrency,
        p_key_budget_nanos, p_tenant_budget_nanos, p_is_paid)
      WITH ORDINALITY AS a (
        tenant_id, key_id, key_requests, key_tokens, key_concurrency, tenant_requests, tenant_tokens, tenant_concurrency, key_budget, tenant_budget, is_paid, n)
  LOOP
    SELECT coalesce(s.balance_nanos - s.settled_nanos, 0) AS spendable, coalesce(s.pending_nanos, 0) AS pending_nanos, coalesce(s.in_flight, 0) AS in_flight,
        coalesce(s.hold_mean_ms, 0) AS hold_mean_ms, coalesce(s.suspended, false) AS suspended, s.budget_nanos,
        CASE WHEN s.month >= v_month THEN s.spent_nanos ELSE 0 END AS spent_nanos,
        greatest(b.requests_full_us - ahead_us(b.written_us, b.requests_full_us, v_now_us), v_now_us) AS requests_us,
        greatest(b.tokens_full_us - ahead_us(b.written_us, b.requests_full_us, v_now_us), v_now_us) AS tokens_us
      INTO t FROM (SELECT 1) one
      LEFT JOIN tenant s ON s.tenant_id = r.tenant_id
      LEFT JOIN bucket b ON b.tenant_id = r.tenant_id AND b.key_id = '';
    SELECT coalesce(s.pending_nanos, 0) AS pending_nanos, coalesce(s.in_flight, 0) AS in_flight, s.budget_nanos,
        CASE WHEN s.month >= v_month THEN s.spent_nanos ELSE 0 END AS spent_nanos,
        greatest(b.requests_full_us - ahead_us(b.written_us, b.requests_full_us, v_now_us), v_now_us) AS requests_us,
        greatest(b.tokens_full_us - ahead_us(b.written_us, b.requests_full_us, v_now_us), v_now_us) AS tokens_us
      INTO k FROM (SELECT 1) one
      LEFT JOIN key_state s ON s.tenant_id = r.tenant_id AND s.key_id = r.key_id
      LEFT JOIN bucket b ON b.tenant_id = r.tenant_id AND b.key_id = r.key_id;
    v_key_requests_us := k.requests_us + bucket_us(1, r.key_requests);
    v_tenant_requests_us := t.requests_us + bucket_us(1, r.tenant_requests);
    v_key_tokens_us := k.tokens_us + bucket_us(1, r.key_tokens);
    v_tenant_tokens_us := t.tokens_us + bucket_us(1, r.tenant_tokens);
    v_key_unspent := coalesce(k.budget_nanos, r.key_budget) - k.spent_nanos;
    v_tenant_unspent := coalesce(t.budget_nanos, r.tenant_budget) - t.spent_nanos;
    n := r.n;
    code := NULL;
    scope := NULL;
    retry_ms := NULL;
    IF t.suspended THEN
      code := 'tenant_suspended';
      scope := 'tenant';
    ELSIF greatest(v_key_requests_us, v_tenant_requests_us, v_key_tokens_us, v_tenant_tokens_us) > v_full_us THEN
      code := CASE WHEN greatest(v_key_requests_us, v_tenant_requests_us) > v_full_us THEN 'requests' ELSE 'tokens' END;
      scope := CASE WHEN (code = 'requests' AND v_key_requests_us > v_full_us) OR (code = 'tokens' AND v_key_tokens_us > v_full_us) THEN 'key' ELSE 'tenant' END;
      retry_ms := (greatest(v_key_requests_us, v_tenant_requests_us, v_key_tokens_us, v_tenant_tokens_us) - v_full_us + 999) / 1000;
    ELSIF k.in_flight >= r.key_concurrency OR t.in_flight >= r.tenant_concurrency THEN
      code := 'concurrency';
      scope := CASE WHEN k.in_flight >= r.key_concurrency THEN 'key' ELSE 'tenant' END;
    ELSIF NOT r.is_paid THEN
      code := NULL;
    ELSIF v_key_unspent < 1 OR v_tenant_unspent < 1 THEN
      code := 'budget_reached';
      scope := CASE WHEN v_key_unspent < 1 THEN 'key' ELSE 'tenant' END;
    ELSIF t.spendable < 1 THEN
      code := 'credit_exhausted';
      scope := 'tenant';
    ELSIF least(t.spendable - t.pending_nanos, v_key_unspent - k.pending_nanos, v_tenant_unspent - t.pending_nanos) < 1 THEN
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
    RETURN NEXT;
  END LOOP;
END
$$;
CREATE FUNCTION snapshot(p_tenant_id text, p_after text, p_limit int)
RETURNS TABLE (
  tenant_id text, version bigint, balance_nanos bigint, settled_nanos bigint, pending_nanos bigint,
  pending_holds bigint, settled_holds bigint, rows_pending_nanos bigint, rows_settled_nanos bigint, oldest_settled_id text,
  suspended boolean, in_flight bigint, withdrawn_nanos numeric)
LANGUAGE sql STABLE AS $$
  WITH page AS MATERIALIZED (
    SELECT * FROM tenant t
    WHERE (p_tenant_id IS NULL OR t.tenant_id = p_tenant_id) AND (p_after IS NULL OR t.tenant_id > p_after)
    ORDER BY t.tenant_id LIMIT p_limit
  )
  SELECT page.tenant_id, page.version, page.balance_nanos, page.settled_nanos, page.pending_nanos,
    sums.pending_holds, sums.settled_holds, sums.pending_nanos, sums.settled_nanos, sums.oldest_settled_id, page.suspended, page.in_flight,
    (SELECT coalesce(sum(w.nanos), 0) FROM withdrawal w WHERE w.tenant_id = page.tenant_id AND w.version > page.version)
  FROM page, LATERAL (
    SELECT count(*) FILTER (WHERE state = 'pending') AS pending_holds, coalesce(sum(hold_nanos) FILTER (WHERE state = 'pending'), 0)::bigint AS pending_nanos,
      count(*) FILTER (WHERE state = 'settled') AS settled_holds, coalesce(sum(cost_nanos) FILTER (WHERE state = 'settled'), 0)::bigint AS settled_nanos,
      min(id) FILTER (WHERE state = 'settled') AS oldest_settled_id
    FROM hold h WHERE h.tenant_id = page.tenant_id
  ) sums ORDER BY page.tenant_id
$$;
CREATE FUNCTION repair(
  p_now_ms bigint, p_tenant_id text, p_version bigint, p_balance_nanos bigint, p_suspended boolean,
  p_spent_month int[], p_spent_key_id text[], p_spent_nanos bigint[],
  p_budget_key_id text[], p_budget_version bigint[], p_budget_nanos bigint[], p_release_id text[])
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  LONGEST_REFILL_US constant bigint := 3600000000;
  MINUTE_US constant bigint := 60000000;
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
      UNION SELECT u.key_id FROM unnest(p_spent_month, p_spent_key_id) AS u (month, key_id) WHERE u.key_id <> '' AND u.month = v_month
      UNION SELECT u FROM unnest(p_budget_key_id) u WHERE u <> '') wanted
    ON CONFLICT DO NOTHING;
  UPDATE key_state k SET pending_nanos = s.pending_nanos, in_flight = s.in_flight, budget_nanos = b.nanos, budget_version = coalesce(b.version, 0),
      month = CASE WHEN v_is_told THEN v_month ELSE k.month END,
      spent_nanos = CASE WHEN NOT v_is_told THEN k.spent_nanos
        ELSE least(greatest(CASE WHEN k.month >= v_month THEN k.spent_nanos ELSE 0 END, s.spent_nanos), s.spent_nanos + s.settled_nanos) END
    FROM (
      SELECT o.key_id, coalesce(sum(h.hold_nanos) FILTER (WHERE h.state = 'pending'), 0)::bigint AS pending_nanos, count(h.id) FILTER (WHERE h.state = 'pending') AS in_flight,
        coalesce(sum(h.cost_nanos) FILTER (WHERE h.state = 'settled'), 0)::bigint AS settled_nanos,
        coalesce((SELECT u.nanos FROM unnest(p_spent_month, p_spent_key_id, p_spent_nanos) AS u (month, key_id, nanos) WHERE u.key_id = o.key_id AND u.month = v_month), 0) AS spent_nanos
      FROM key_state o LEFT JOIN hold h ON h.tenant_id = p_tenant_id AND h.key_id = o.key_id
      WHERE o.tenant_id = p_tenant_id GROUP BY o.key_id) s
    LEFT JOIN unnest(p_budget_key_id, p_budget_version, p_budget_nanos) AS b (key_id, version, nanos) ON b.key_id = s.key_id
    WHERE k.tenant_id = p_tenant_id AND k.key_id = s.key_id;
  UPDATE tenant t SET version = p_version, balance_nanos = p_balance_nanos, suspended = p_suspended,
      settled_nanos = s.settled_nanos, pending_nanos = s.pending_nanos, in_flight = s.in_flight, budget_nanos = b.nanos, budget_version = coalesce(b.version, 0),
      month = CASE WHEN v_is_told THEN v_month ELSE t.month END,
      spent_nanos = CASE WHEN NOT v_is_told THEN t.spent_nanos
        ELSE least(greatest(CASE WHEN t.month >= v_month THEN t.spent_nanos ELSE 0 END, s.spent_nanos), s.spent_nanos + s.settled_nanos) END
    FROM (
      SELECT coalesce(sum(h.hold_nanos) FILTER (WHERE h.state = 'pending'), 0)::bigint AS pending_nanos, count(h.id) FILTER (WHERE h.state = 'pending') AS in_flight,
        coalesce(sum(h.cost_nanos) FILTER (WHERE h.state = 'settled'), 0)::bigint AS settled_nanos,
        coalesce((SELECT u.nanos FROM unnest(p_spent_month, p_spent_key_id, p_spent_nanos) AS u (month, key_id, nanos) WHERE u.key_id = '' AND u.month = v_month), 0) AS spent_nanos
      FROM hold h WHERE h.tenant_id = p_tenant_id) s
    LEFT JOIN unnest(p_budget_key_id, p_budget_version, p_budget_nanos) AS b (key_id, version, nanos) ON b.key_id = ''
    WHERE t.tenant_id = p_tenant_id;
  UPDATE bucket b SET
      requests_full_us = v_now_us + CASE WHEN o.requests_us BETWEEN 0 AND MINUTE_US THEN o.requests_us ELSE 0 END,
      tokens_full_us = v_now_us + CASE WHEN o.tokens_us BETWEEN 0 AND LONGEST_REFILL_US THEN o.tokens_us ELSE 0 END,
      written_us = v_now_us
    FROM (
      SELECT w.key_id, greatest(w.requests_full_us, 0) - w.from_us AS requests_us, greatest(w.tokens_full_us, 0) - w.from_us AS tokens_us
      FROM (SELECT *, greatest(written_us, v_now_us) AS from_us FROM bucket WHERE tenant_id = p_tenant_id) w) o
    WHERE b.tenant_id = p_tenant_id AND b.key_id = o.key_id;
END
$$;
INSERT INTO schema_migration (number, name, checksum) VALUES
  (1, '001_tables.sql', '5996225ebc7765fecb64d270a4ecf61d142e916125a373d31390e1abcc40726b'),
  (2, '002_admit.sql', '22067571431ac3277976616498126c2e72641d50c721e368d2a579f7999de4dc'),
  (3, '003_holds.sql', 'a4f438cf603bc1447226359a306317ed9665d382edd3225a5912a16738ae37c5'),
  (4, '004_books.sql', 'b28755bd081af087662cdbd8e7867b0ad5bbfbe3b29b8198f642f04da217db62'),
  (5, '005_withdraw.sql', 'e6d3ede35f15d7d4eb8c8d38b8fa5dde1cdea4f2217129951a0ad6d479f5e5ab'),
  (6, '006_budgets.sql', 'e12a0802646a244fc54e87a98700937a7a32e80ef84a729070f21760fb688a05'),
  (7, '007_hold_lengths.sql', '7c7cdcab070e193d987f448515e2046fc81ae4e983e1bcced49b3f906394f706'),
  (8, '008_retry_after.sql', 'dea2d3e2286b1fc944368f747312fa7ff7ea117c522c1187c3721b7700aced5a'),
  (9, '009_holds_by_tenant.sql', 'e00316ed2d29090e157e2707672e8b96873721c1973670fde0610b07853c0f72'),
  (10, '010_clock_of_buckets.sql', '53c2a1f5319cbbed4288a24483bda735f58a58153e1765ab62ebe7ccf38a839e'),
  (11, '011_clock_of_holds.sql', '1d4764c06c13e3929d875474fc77f4ecb973d94c5c0b3064ddfd9d9e7ee42631'),
  (12, '012_write_probe.sql', 'ffd1eb8eed096c6c98eccb95bc4f85807d67313d4565740b74e02cce54645f7e'),
  (13, '013_look.sql', '1fa6029e413a86c684dd6f039dff85ba3367e24c85aa27110e094d358b4e4025'),
  (14, '014_repair.sql', '7dfb524201a77197e806affd68c1ac9e1e619f3b7b30087ab37ef44f5d1e470c');
