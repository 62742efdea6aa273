-- The backends that get no new calls: operators take them out of service for a while.
CREATE TABLE drained_backend (
  -- As in usage events: origin and base path of the URL.
  backend text COLLATE "C" PRIMARY KEY CHECK (char_length(backend) BETWEEN 1 AND 256),
  drained_at timestamptz(3) NOT NULL
);
