-- The secrets of a key after its first one, which is in `credential`. A row is never changed: what ends the secrets
-- before it is written with the next one. `former_until` is the latest time of all of them.
CREATE TABLE credential_rotation (
  credential_id text COLLATE "C" NOT NULL REFERENCES credential,
  number int NOT NULL CHECK (number >= 1),
  hash text COLLATE "C" NOT NULL UNIQUE CHECK (hash ~ '^[0-9a-f]{64}$'),
  former_until timestamptz(3) NOT NULL,
  created_at timestamptz(3) NOT NULL DEFAULT now(),
  PRIMARY KEY (credential_id, number)
);

-- For lists: when the newest secret was made, and until when a former one may be accepted.
ALTER TABLE credential
  ADD COLUMN rotated_at timestamptz(3),
  ADD COLUMN former_until timestamptz(3),
  ADD CHECK ((rotated_at IS NULL) = (former_until IS NULL));
