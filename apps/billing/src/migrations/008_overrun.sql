-- What backends delivered beyond their holds: served, charged to nobody, the operator's loss. Whole cents of it are booked with the tenant's next usage entry, as revenue against
-- the account `overrun`; what has gathered since stands in the books.
ALTER TABLE charge ADD COLUMN overrun_nanos bigint NOT NULL DEFAULT 0 CHECK (overrun_nanos >= 0);
ALTER TABLE tenant_books ADD COLUMN overrun_nanos numeric(30, 0) NOT NULL DEFAULT 0 CHECK (overrun_nanos >= 0);
