-- formerly sha256 3fc23c0e1c4a68215c7c1924630b93f3cc8b05b578701277f3843b26a99d245e
-- formerly sha256 83cd162bb387cadda1484cfc1141d6c74ca7e28bfff11dd4468e05017a9c36d8
-- Invoices: the usage debits of one tenant and month, closed once, numbered without gaps.

-- Set when the month is closed. Nothing in it changes any more; its late charges belong to the running month.
ALTER TABLE tenant_month ADD COLUMN closed_at timestamptz;
CREATE INDEX tenant_month_open ON tenant_month (period, tenant_id) WHERE closed_at IS NULL;

-- The only issuer. Closing takes the next numbers here, in the transaction that writes the invoices. So each number
-- taken is used.
CREATE TABLE invoice_counter (
  issuer text PRIMARY KEY DEFAULT 'tollgate' CHECK (issuer = 'tollgate'),
  last_number bigint NOT NULL DEFAULT 0 CHECK (last_number BETWEEN 0 AND 9007199254740991),
  -- The months up to this one are closed for every tenant, or wait for credit. A tenant without usage in them gets no
  -- invoice for them any more.
  closed_through month NOT NULL DEFAULT '0001-01'
);
INSERT INTO invoice_counter DEFAULT VALUES;

-- A month without a debit is closed without an invoice.
CREATE TABLE invoice (
  accounting_number bigint PRIMARY KEY CHECK (accounting_number > 0),
  tenant_id text COLLATE "C" NOT NULL,
  period month NOT NULL,
  amount_cents bigint NOT NULL CHECK (amount_cents BETWEEN 1 AND 9007199254740991),
  created_at timestamptz NOT NULL,
  CONSTRAINT invoice_of_a_month UNIQUE (tenant_id, period),
  FOREIGN KEY (tenant_id, period) REFERENCES tenant_month
);

-- Void invoices. A reversing entry gave the amount back.
CREATE TABLE invoice_void (
  accounting_number bigint PRIMARY KEY REFERENCES invoice,
  entry_id text COLLATE "C" NOT NULL UNIQUE REFERENCES journal_entry,
  created_at timestamptz NOT NULL DEFAULT now()
);

DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'tollgate_billing') THEN
    GRANT SELECT, UPDATE ON invoice_counter TO tollgate_billing;
    GRANT SELECT, INSERT ON invoice, invoice_void TO tollgate_billing;
  END IF;
END $$;
