-- formerly sha256 57ccde569afa6183d2978ff24c23c1534abaa985a8c4aad50a84dfadba075619
-- What backends delivered beyond their holds: served, charged to nobody, the operator's loss. Whole cents are booked
-- with the tenant's next usage entry, as revenue against the account `overrun`. Amounts gathered since stand in
-- tenant_books.
ALTER TABLE charge ADD COLUMN overrun_nanos bigint NOT NULL DEFAULT 0 CHECK (overrun_nanos >= 0);
ALTER TABLE tenant_books ADD COLUMN overrun_nanos numeric(30, 0) NOT NULL DEFAULT 0 CHECK (overrun_nanos >= 0);
