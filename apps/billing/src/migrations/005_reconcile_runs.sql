-- Runs of reconcile: how far they are, and what they found; kept for a day.
CREATE TABLE reconcile_run (
  id text COLLATE "C" PRIMARY KEY,
  state text NOT NULL CHECK (state IN ('running', 'done', 'failed')),
  started_at timestamptz NOT NULL DEFAULT now(),
  -- Its process lives: written each second.
  beat_at timestamptz NOT NULL DEFAULT now(),
  -- { events, tenants, differenceCount }
  progress jsonb NOT NULL,
  -- ReconcileReport of libs/contracts, when it is done. json: as it was written.
  report json,
  reason text
);

DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'tollgate_billing') THEN
    GRANT SELECT, INSERT, UPDATE, DELETE ON reconcile_run TO tollgate_billing;
  END IF;
END $$;
