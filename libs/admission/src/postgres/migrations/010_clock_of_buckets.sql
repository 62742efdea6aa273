-- formerly sha256 a6f4bb4ccc7a160ad1258de5b0602ee164d0fa8ea920a4e5dd0709a90f834d08
-- formerly sha256 53c2a1f5319cbbed4288a24483bda735f58a58153e1765ab62ebe7ccf38a839e
-- A clock that was ahead must not keep a key or a tenant out once it is right again. A bucket records when it was
-- written. If that time is still to come by this clock, the bucket's level of that time applies now. 0: written by a
-- release that did not record it.
ALTER TABLE bucket ADD COLUMN written_us bigint NOT NULL DEFAULT 0;
