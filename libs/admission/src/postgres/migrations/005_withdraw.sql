-- Money that leaves by the books (a refund). What requests can use must shrink before the books do, or a request could be admitted on credit that
-- is gone by the time at which it ends. One row a debit on its way, until news of its version or a newer one has it inside: then the balance is the books' own again.
CREATE TABLE withdrawal (
  tenant_id text COLLATE "C",
  -- The version that the books have with the debit inside: nobody else can make this version meanwhile, as billing holds the tenant's books locked.
  version bigint,
  nanos bigint NOT NULL CHECK (nanos > 0),
  PRIMARY KEY (tenant_id, version)
);

-- Takes the amount out of the balance, all or nothing. code: 'withdrawn', 'refused' (with what is available), 'overtaken' (the books have that version without this debit).
-- A repeat for the same version takes the place of the first one: two of one version cannot both come to be.
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

-- As in 004; a balance of before a withdrawal does not undo it.
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
