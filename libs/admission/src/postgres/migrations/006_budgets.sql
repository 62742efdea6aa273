-- formerly sha256 e12a0802646a244fc54e87a98700937a7a32e80ef84a729070f21760fb688a05
-- Budgets that the operator sets for a tenant or a key. Where there is none (null), that of the request stands: what
-- the configuration gives by default, also kept in the hold (hold.key_budget_nanos, hold.tenant_budget_nanos). What is
-- set is in force for every request and extension from that instant on. "No budget at all" is an amount that no
-- spending reaches.
ALTER TABLE tenant ADD COLUMN budget_nanos bigint, ADD COLUMN budget_version bigint NOT NULL DEFAULT 0;
ALTER TABLE key_state ADD COLUMN budget_nanos bigint, ADD COLUMN budget_version bigint NOT NULL DEFAULT 0;
