-- formerly sha256 ffd1eb8eed096c6c98eccb95bc4f85807d67313d4565740b74e02cce54645f7e
-- What ../functions/probe_write.sql writes.
CREATE TABLE write_probe (at timestamptz NOT NULL);
