-- formerly sha256 6e222d52049cdfac423b4e6b55cacd0a5f2fe3236900d7eac88b58905c1c1772
-- Refunds and adjustments, and the suspension of tenants by auth.

-- Why an operator booked it. Required for an adjustment.
ALTER TABLE journal_entry ADD COLUMN reason text CHECK (reason <> '');
ALTER TABLE journal_entry ADD CONSTRAINT an_adjustment_says_why CHECK (type <> 'adjustment' OR reason IS NOT NULL);

-- Of the tenant's status in auth: the newest version received. Older messages change nothing.
ALTER TABLE tenant_books ADD COLUMN status_version bigint NOT NULL DEFAULT 0;

-- A debit that is about to be taken out of the admission store. Written before that, and deleted by the transaction
-- that books it. A row that stays was never booked: a balance update of a later version gives its amount back
-- (refunds/money-out.ts).
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
