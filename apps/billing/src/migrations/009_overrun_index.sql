-- Few charges have an overrun: their sum is read from these alone, so that the sum of all costs stays with charge_seq, which has no overruns.
CREATE INDEX charge_overrun ON charge (tenant_id) INCLUDE (overrun_nanos) WHERE overrun_nanos > 0;
