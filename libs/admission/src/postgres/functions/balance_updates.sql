-- Balance updates: balances, releases, budgets.

-- p_release_tenant_id and p_release_id are the releases of all balance updates. One transaction: a settled hold is
-- deleted when the balance that includes its cost arrives.
CREATE OR REPLACE FUNCTION apply_balance_updates(
  p_tenant_id text[], p_version bigint[], p_balance_nanos bigint[], p_suspended boolean[],
  p_release_tenant_id text[], p_release_id text[])
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
  -- rule 26: newer balance
  FOR r IN
    SELECT * FROM unnest(p_tenant_id, p_version, p_balance_nanos, p_suspended)
      AS a (tenant_id, version, balance_nanos, suspended)
  LOOP
    -- A balance from before a withdrawal does not undo the withdrawal.
    IF v_any_withdrawn THEN
      SELECT coalesce(sum(nanos), 0) INTO v_withdrawn
        FROM withdrawal w WHERE w.tenant_id = r.tenant_id AND w.version > r.version;
    END IF;
    UPDATE tenant t
      SET version = r.version, balance_nanos = r.balance_nanos - v_withdrawn, suspended = r.suspended
      WHERE t.tenant_id = r.tenant_id AND t.version < r.version;
    IF v_any_withdrawn THEN
      DELETE FROM withdrawal w WHERE w.tenant_id = r.tenant_id AND w.version <= r.version;
    END IF;
  END LOOP;
  -- rule 27: releases
  FOR r IN
    SELECT u.tenant_id, array_agg(u.id) AS ids
    FROM unnest(p_release_tenant_id, p_release_id) AS u (tenant_id, id) GROUP BY u.tenant_id
  LOOP
    WITH gone AS (
      DELETE FROM hold h WHERE h.id = ANY (r.ids) AND h.tenant_id = r.tenant_id AND h.state = 'settled'
      RETURNING h.cost_nanos)
      SELECT coalesce(sum(cost_nanos), 0) INTO v_released FROM gone;
    IF v_released > 0 THEN
      UPDATE tenant t SET settled_nanos = t.settled_nanos - v_released WHERE t.tenant_id = r.tenant_id;
    END IF;
  END LOOP;
END
$$;

-- rule 28: newer budgets
-- Budgets of the operator. Each is applied only if it is newer than the stored one, so order and repeats do not matter.
-- Key '' is the tenant's own budget.
CREATE OR REPLACE FUNCTION apply_budgets(p_tenant_id text[], p_key_id text[], p_version bigint[], p_nanos bigint[])
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  r record;
BEGIN
  PERFORM lock_tenants(p_tenant_id);
  FOR r IN
    SELECT * FROM unnest(p_tenant_id, p_key_id, p_version, p_nanos) AS a (tenant_id, key_id, version, nanos)
  LOOP
    IF r.key_id = '' THEN
      UPDATE tenant t SET budget_nanos = r.nanos, budget_version = r.version
        WHERE t.tenant_id = r.tenant_id AND t.budget_version < r.version;
    ELSE
      INSERT INTO key_state AS k (tenant_id, key_id, budget_nanos, budget_version)
        VALUES (r.tenant_id, r.key_id, r.nanos, r.version)
        ON CONFLICT (tenant_id, key_id)
        DO UPDATE SET budget_nanos = excluded.budget_nanos, budget_version = excluded.budget_version
        WHERE k.budget_version < excluded.budget_version;
    END IF;
  END LOOP;
END
$$;
