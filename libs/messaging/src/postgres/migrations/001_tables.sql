-- Messages that wait for their consumer group: a row for each publish call and group (per 1,000 messages). It is
-- inserted, read and deleted, and never changed.
CREATE TABLE batch (
  -- `<topic>.<group>`
  queue text COLLATE "C" NOT NULL,
  -- Ascending in the order of calls that follow each other, whatever the clock says.
  id bigint GENERATED ALWAYS AS IDENTITY,
  -- { messages: [envelope, …] }, in the order of the call. Not json: that takes text which no service can store.
  data jsonb NOT NULL,
  PRIMARY KEY (queue, id)
) WITH (
  -- The table fills and empties all day. Vacuum comes by the number of dead rows, and leaves the file its length: to
  -- cut it off would lock the table.
  autovacuum_vacuum_scale_factor = 0,
  autovacuum_vacuum_threshold = 1000,
  autovacuum_vacuum_cost_delay = 0,
  vacuum_truncate = off,
  toast.autovacuum_vacuum_scale_factor = 0,
  toast.autovacuum_vacuum_threshold = 5000,
  toast.autovacuum_vacuum_cost_delay = 0,
  toast.vacuum_truncate = off
);

-- A fifth of pglz's time. Not every server was built with it.
DO $$
BEGIN
  ALTER TABLE batch ALTER COLUMN data SET COMPRESSION lz4;
EXCEPTION
  WHEN feature_not_supported THEN NULL;
END $$;

-- Unreadable messages. They stay until an operator acts.
CREATE TABLE dead (
  queue text COLLATE "C" NOT NULL,
  -- Follows from the message's place, so that a repeat adds nothing.
  id uuid NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  reason text NOT NULL,
  -- What was delivered, unchanged.
  message json NOT NULL,
  PRIMARY KEY (queue, id)
);
