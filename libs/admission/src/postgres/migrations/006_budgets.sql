-- formerly sha256 05538b6e3861d7dd00dd40c62bf48245ceafbdb743d3dbfda0089e9c0aff3c58
-- formerly sha256 e12a0802646a244fc54e87a98700937a7a32e80ef84a729070f21760fb688a05
-- Budgets that the operator sets for a tenant or a key. If null, the budget of the request applies: the default of the
-- configuration, which the hold keeps too (hold.key_budget_nanos, hold.tenant_budget_nanos). A budget applies to every
-- request and extension from the moment at which it is set. "No budget at all" is an amount that no spending reaches.
ALTER TABLE tenant ADD COLUMN budget_nanos bigint, ADD COLUMN budget_version bigint NOT NULL DEFAULT 0;
ALTER TABLE key_state ADD COLUMN budget_nanos bigint, ADD COLUMN budget_version bigint NOT NULL DEFAULT 0;
