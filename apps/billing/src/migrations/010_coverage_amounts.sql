-- A month's debits and how far it is covered, from the index alone: each invoice sums them once more at commit (007), and a busy month has millions of coverages.
ALTER TABLE coverage DROP CONSTRAINT coverage_range, ADD CONSTRAINT coverage_range UNIQUE (tenant_id, period, from_seq) INCLUDE (to_seq, amount_cents);
