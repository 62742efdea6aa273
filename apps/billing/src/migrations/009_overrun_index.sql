-- formerly sha256 64d4e5732eace9d28d1b993d60fd3c3d882bce7222af537fc7886f878bba499f
-- Few charges have an overrun. Their sum is read from this index alone. The sum of all costs is read from charge_seq,
-- which has no overruns.
CREATE INDEX charge_overrun ON charge (tenant_id) INCLUDE (overrun_nanos) WHERE overrun_nanos > 0;
