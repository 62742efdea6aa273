-- Invoices: the usage debits of one tenant and month, closed once, numbered without a gap.

-- Set when the month is closed: nothing of it changes any more; its late charges belong to the running month.
ALTER TABLE tenant_month ADD COLUMN closed_at timestamptz;
CREATE INDEX tenant_month_open ON tenant_month (period, tenant_id) WHERE closed_at IS NULL;

-- The one issuer: whoever closes takes the next numbers here, in the transaction that writes the invoices, so that a number is used or not taken.
CREATE TABLE invoice_counter (
  issuer text PRIMARY KEY DEFAULT 'tollgate' CHECK (issuer = 'tollgate'),
  last_number bigint NOT NULL DEFAULT 0 CHECK (last_number BETWEEN 0 AND 9007199254740991),
  -- Every tenant's months up to this one are closed, or wait for credit; a tenant without usage in them gets no invoice for them any more.
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

-- An invoice is void when it is here: its amount was given back by a reversing entry.
CREATE TABLE invoice_void (
  accounting_number bigint PRIMARY KEY REFERENCES invoice,
  entry_id text COLLATE "C" NOT NULL UNIQUE REFERENCES journal_entry,
  created_at timestamptz NOT NULL DEFAULT now()
);

CREATE FUNCTION assert_invoice() RETURNS trigger LANGUAGE plpgsql SET search_path = billing, pg_temp AS $$
DECLARE
  debited numeric;
  m tenant_month;
BEGIN
  IF NEW.accounting_number > 1 AND NOT EXISTS (SELECT FROM invoice WHERE accounting_number = NEW.accounting_number - 1) THEN
    RAISE check_violation USING MESSAGE = format('invoice %s: no invoice %s before it', NEW.accounting_number, NEW.accounting_number - 1);
  END IF;
  -- Every cover has its entry of the same amount and month (002).
  SELECT coalesce(sum(amount_cents), 0) INTO debited FROM coverage WHERE tenant_id = NEW.tenant_id AND period = NEW.period;
  SELECT * INTO m FROM tenant_month WHERE tenant_id = NEW.tenant_id AND period = NEW.period;
  IF debited <> NEW.amount_cents OR m.debited_cents <> NEW.amount_cents OR m.covered_seq <> m.last_seq OR m.closed_at IS NULL THEN
    RAISE check_violation USING MESSAGE = format('invoice %s of %s cents: the entries of %s in %s debit %s, %s of %s charges are covered, closed at %s',
      NEW.accounting_number, NEW.amount_cents, NEW.tenant_id, NEW.period, debited, m.covered_seq, m.last_seq, m.closed_at);
  END IF;
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER invoice_exact AFTER INSERT ON invoice DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION assert_invoice();

CREATE FUNCTION assert_reversed() RETURNS trigger LANGUAGE plpgsql SET search_path = billing, pg_temp AS $$
BEGIN
  IF NOT EXISTS (
    SELECT FROM invoice i JOIN journal_entry e ON e.tenant_id = i.tenant_id AND e.amount_cents = i.amount_cents AND e.type = 'adjustment' AND e.source = 'invoice'
      JOIN posting p ON p.entry_id = e.id AND p.account = 'usage_revenue' AND p.amount_cents = -i.amount_cents
    WHERE i.accounting_number = NEW.accounting_number AND e.id = NEW.entry_id
  ) THEN
    RAISE check_violation USING MESSAGE = format('entry %s does not reverse invoice %s', NEW.entry_id, NEW.accounting_number);
  END IF;
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER void_reverses AFTER INSERT ON invoice_void DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION assert_reversed();

-- What is closed stays closed, and as it is.
CREATE TRIGGER closed_for_good BEFORE UPDATE OR DELETE ON tenant_month FOR EACH ROW WHEN (OLD.closed_at IS NOT NULL) EXECUTE FUNCTION refuse_change();
CREATE FUNCTION assert_month_open() RETURNS trigger LANGUAGE plpgsql SET search_path = billing, pg_temp AS $$
BEGIN
  IF EXISTS (SELECT FROM tenant_month WHERE tenant_id = NEW.tenant_id AND period = NEW.period AND closed_at IS NOT NULL) THEN
    RAISE check_violation USING MESSAGE = format('%s of %s is closed', NEW.period, NEW.tenant_id);
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER month_open AFTER INSERT ON coverage FOR EACH ROW EXECUTE FUNCTION assert_month_open();

-- Numbers are taken one after the other and never given back.
CREATE FUNCTION assert_counter_advances() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.last_number < OLD.last_number OR NEW.closed_through < OLD.closed_through THEN
    RAISE check_violation USING MESSAGE = 'the invoice counter would go back';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER counter_advances BEFORE UPDATE ON invoice_counter FOR EACH ROW EXECUTE FUNCTION assert_counter_advances();

DO $$
DECLARE
  name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['invoice', 'invoice_void'] LOOP
    EXECUTE format('CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON %I FOR EACH ROW EXECUTE FUNCTION refuse_change()', name);
    EXECUTE format('CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON %I FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()', name);
  END LOOP;
  IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'tollgate_billing') THEN
    GRANT SELECT, UPDATE ON invoice_counter TO tollgate_billing;
    GRANT SELECT, INSERT ON invoice, invoice_void TO tollgate_billing;
  END IF;
END $$;
