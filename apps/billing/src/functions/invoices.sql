-- Rules of the database for invoices.

-- At commit: an invoice is the sum of its month's debits, the month is covered to its end and closed, and numbers have
-- no gap.
CREATE OR REPLACE FUNCTION assert_invoice() RETURNS trigger LANGUAGE plpgsql SET search_path = billing, pg_temp AS $$
DECLARE
  debited numeric;
  m tenant_month;
BEGIN
  IF NEW.accounting_number > 1
      AND NOT EXISTS (SELECT FROM invoice WHERE accounting_number = NEW.accounting_number - 1) THEN
    RAISE check_violation USING MESSAGE = format(
      'invoice %s: no invoice %s before it',
      NEW.accounting_number, NEW.accounting_number - 1);
  END IF;
  -- Every cover has its entry of the same amount and month (coverage.sql).
  SELECT coalesce(sum(amount_cents), 0) INTO debited
    FROM coverage WHERE tenant_id = NEW.tenant_id AND period = NEW.period;
  SELECT * INTO m FROM tenant_month WHERE tenant_id = NEW.tenant_id AND period = NEW.period;
  IF debited <> NEW.amount_cents OR m.debited_cents <> NEW.amount_cents
      OR m.covered_seq <> m.last_seq OR m.closed_at IS NULL THEN
    RAISE check_violation USING MESSAGE = format(
      'invoice %s of %s cents: the entries of %s in %s debit %s, %s of %s charges are covered, closed at %s',
      NEW.accounting_number, NEW.amount_cents, NEW.tenant_id, NEW.period,
      debited, m.covered_seq, m.last_seq, m.closed_at);
  END IF;
  RETURN NULL;
END $$;

-- At commit: a reversing entry gives the amount of a void invoice back.
CREATE OR REPLACE FUNCTION assert_reversed() RETURNS trigger LANGUAGE plpgsql SET search_path = billing, pg_temp AS $$
BEGIN
  IF NOT EXISTS (
    SELECT
    FROM invoice i
      JOIN journal_entry e ON e.tenant_id = i.tenant_id AND e.amount_cents = i.amount_cents
        AND e.type = 'adjustment' AND e.source = 'invoice'
      JOIN posting p ON p.entry_id = e.id AND p.account = 'usage_revenue' AND p.amount_cents = -i.amount_cents
    WHERE i.accounting_number = NEW.accounting_number AND e.id = NEW.entry_id
  ) THEN
    RAISE check_violation USING MESSAGE = format(
      'entry %s does not reverse invoice %s',
      NEW.entry_id, NEW.accounting_number);
  END IF;
  RETURN NULL;
END $$;

-- Numbers are taken one by one and never returned.
CREATE OR REPLACE FUNCTION assert_counter_advances() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.last_number < OLD.last_number OR NEW.closed_through < OLD.closed_through THEN
    RAISE check_violation USING MESSAGE = 'the invoice counter would go back';
  END IF;
  RETURN NEW;
END $$;
