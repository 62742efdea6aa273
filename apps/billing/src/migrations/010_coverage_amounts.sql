-- formerly sha256 060d682aa9ceb23d72fc6e1af726a1207e4ea0ac4d9647a861fad5fbdc75f880
-- A month's debits, and how far it is covered, from the index alone. Each invoice sums them again at commit (007), and
-- a busy month has millions of coverages.
ALTER TABLE coverage
  DROP CONSTRAINT coverage_range,
  ADD CONSTRAINT coverage_range UNIQUE (tenant_id, period, from_seq) INCLUDE (to_seq, amount_cents);
