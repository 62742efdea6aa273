-- Refunds and adjustments; a tenant's suspension as auth tells it.

-- Why a person booked it: an adjustment always says so.
ALTER TABLE journal_entry ADD COLUMN reason text CHECK (reason <> '');
ALTER TABLE journal_entry ADD CONSTRAINT an_adjustment_says_why CHECK (type <> 'adjustment' OR reason IS NOT NULL);

-- Of auth's tenant, as told last: what came later by then is not undone by what arrives late.
ALTER TABLE tenant_books ADD COLUMN status_version bigint NOT NULL DEFAULT 0;

-- A debit that is about to be taken out of the admission store, written before that and taken away in the transaction that books it. One that stays was never booked: its
-- amount is given back by news of a further version (refunds/money-out.ts).
CREATE TABLE withdrawal_intent (
  id text COLLATE "C" PRIMARY KEY,
  tenant_id text COLLATE "C" NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);

DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'tollgate_billing') THEN
    GRANT SELECT, INSERT, DELETE ON withdrawal_intent TO tollgate_billing;
  END IF;
END $$;
