-- formerly sha256 53c2a1f5319cbbed4288a24483bda735f58a58153e1765ab62ebe7ccf38a839e
-- A clock that was ahead must not keep a key or a tenant out once it is right again. A bucket remembers when it was
-- written: where that is to come by this clock, what it stood at then, it stands at now. 0: by a release that did not
-- tell.
ALTER TABLE bucket ADD COLUMN written_us bigint NOT NULL DEFAULT 0;
