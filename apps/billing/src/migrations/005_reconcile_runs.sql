-- formerly sha256 e8647132fe2d769049e88cec7c14f18d9049ac85c631ec327cc3ba16c8ff7a0d
-- Runs of reconcile: their progress and their findings. Kept for a day.
CREATE TABLE reconcile_run (
  id text COLLATE "C" PRIMARY KEY,
  state text NOT NULL CHECK (state IN ('running', 'done', 'failed')),
  started_at timestamptz NOT NULL DEFAULT now(),
  -- Written every second while its process lives.
  beat_at timestamptz NOT NULL DEFAULT now(),
  -- { events, tenants, differenceCount }
  progress jsonb NOT NULL,
  -- ReconcileReport of libs/contracts, once it is done. json keeps the text as it was written.
  report json,
  reason text
);

DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'tollgate_billing') THEN
    GRANT SELECT, INSERT, UPDATE, DELETE ON reconcile_run TO tollgate_billing;
  END IF;
END $$;
