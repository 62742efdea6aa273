-- The schema "billing" as the version before 2026-11-23 left it: its numbered migrations in one, without comments and without functions
-- that a later one of them replaced. For tests of the upgrade; what is in force is in apps/billing/src.
CREATE TABLE schema_migration (
  number int PRIMARY KEY, name text NOT NULL, checksum text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now());
CREATE DOMAIN month AS text COLLATE "C" CHECK (VALUE ~ '^[0-9]{4}-(0[1-9]|1[0-2])$');
CREATE TABLE tenant_books (
  tenant_id text COLLATE "C" PRIMARY KEY CHECK (tenant_id <> ''),
  version bigint NOT NULL DEFAULT 0,
  balance_cents bigint NOT NULL DEFAULT 0 CHECK (balance_cents BETWEEN -9007199254740991 AND 9007199254740991),
  last_sequence bigint NOT NULL DEFAULT 0,
  last_cover bigint NOT NULL DEFAULT 0,
  carried_nanos bigint NOT NULL DEFAULT 0 CHECK (carried_nanos BETWEEN 0 AND 9999999),
  gathered_nanos numeric(30, 0) NOT NULL DEFAULT 0 CHECK (gathered_nanos >= 0),
  suspended boolean NOT NULL DEFAULT false,
  last_posted_at timestamptz,
  due_at timestamptz,
  created_at timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 60);
CREATE INDEX tenant_books_due ON tenant_books (due_at) WHERE due_at IS NOT NULL;
CREATE TABLE tenant_month (
  tenant_id text COLLATE "C" NOT NULL REFERENCES tenant_books,
  period month NOT NULL,
  last_seq bigint NOT NULL DEFAULT 0,
  covered_seq bigint NOT NULL DEFAULT 0,
  gathered_nanos numeric(30, 0) NOT NULL DEFAULT 0 CHECK (gathered_nanos >= 0),
  debited_cents bigint NOT NULL DEFAULT 0 CHECK (debited_cents >= 0),
  PRIMARY KEY (tenant_id, period),
  CHECK (covered_seq BETWEEN 0 AND last_seq)
) WITH (fillfactor = 60);
CREATE INDEX tenant_month_uncovered ON tenant_month (tenant_id, period) WHERE covered_seq < last_seq;
CREATE TABLE charge (
  id text COLLATE "C" PRIMARY KEY,
  tenant_id text COLLATE "C" NOT NULL,
  key_id text NOT NULL,
  cost_nanos bigint NOT NULL CHECK (cost_nanos >= 0),
  ended_at timestamptz NOT NULL,
  period month NOT NULL,
  seq bigint NOT NULL CHECK (seq > 0),
  gathered_at timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX charge_seq ON charge (tenant_id, period, seq) INCLUDE (cost_nanos);
CREATE TABLE rejected_charge (
  digest bytea PRIMARY KEY CHECK (length(digest) = 32),
  reason text NOT NULL,
  data text NOT NULL,
  times bigint NOT NULL DEFAULT 1 CHECK (times > 0),
  first_at timestamptz NOT NULL DEFAULT now(),
  last_at timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE journal_entry (
  id text COLLATE "C" PRIMARY KEY,
  tenant_id text COLLATE "C" NOT NULL REFERENCES tenant_books,
  sequence bigint NOT NULL CHECK (sequence > 0),
  type text NOT NULL CHECK (type IN ('topup', 'usage', 'adjustment', 'refund')),
  amount_cents bigint NOT NULL CHECK (CASE type WHEN 'topup' THEN amount_cents > 0 WHEN 'adjustment' THEN amount_cents <> 0 ELSE amount_cents < 0 END),
  source text NOT NULL CHECK (source <> ''),
  ref text NOT NULL CHECK (ref <> ''),
  input_hash bytea NOT NULL CHECK (length(input_hash) = 32),
  period month NOT NULL,
  balance_after_cents bigint NOT NULL CHECK (balance_after_cents BETWEEN -9007199254740991 AND 9007199254740991),
  created_at timestamptz NOT NULL,
  CONSTRAINT journal_entry_sequence UNIQUE (tenant_id, sequence),
  CONSTRAINT journal_entry_idempotency UNIQUE (tenant_id, source, ref),
  CONSTRAINT usage_comes_from_metering CHECK ((type = 'usage') = (source = 'metering')),
  CONSTRAINT balance_not_below_zero CHECK (type = 'adjustment' OR amount_cents > 0 OR balance_after_cents >= 0)
);
CREATE TABLE posting (
  entry_id text COLLATE "C" NOT NULL REFERENCES journal_entry,
  account text NOT NULL CHECK (account IN ('credit', 'usage_revenue', 'payments_clearing', 'adjustments', 'overrun')),
  amount_cents bigint NOT NULL CHECK (amount_cents <> 0),
  PRIMARY KEY (entry_id, account)
);
CREATE TABLE coverage (
  tenant_id text COLLATE "C" NOT NULL REFERENCES tenant_books,
  number bigint NOT NULL CHECK (number > 0),
  period month NOT NULL,
  from_seq bigint NOT NULL,
  to_seq bigint NOT NULL CHECK (to_seq >= from_seq),
  charges_nanos numeric(30, 0) NOT NULL CHECK (charges_nanos >= 0),
  carried_in_nanos bigint NOT NULL CHECK (carried_in_nanos BETWEEN 0 AND 9999999),
  amount_cents bigint NOT NULL CHECK (amount_cents >= 0),
  carried_out_nanos bigint NOT NULL CHECK (carried_out_nanos BETWEEN 0 AND 9999999),
  entry_id text COLLATE "C" UNIQUE REFERENCES journal_entry,
  PRIMARY KEY (tenant_id, number),
  CONSTRAINT coverage_range UNIQUE (tenant_id, period, from_seq),
  CONSTRAINT covered_exactly CHECK (charges_nanos + carried_in_nanos = amount_cents::numeric * 10000000 + carried_out_nanos),
  CONSTRAINT amount_has_an_entry CHECK ((entry_id IS NULL) = (amount_cents = 0))
);
CREATE TABLE outbox (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, topic text NOT NULL, data jsonb NOT NULL, created_at timestamptz NOT NULL DEFAULT now());
CREATE TABLE outbox_refused (id bigint PRIMARY KEY, topic text NOT NULL, data jsonb NOT NULL, created_at timestamptz NOT NULL, refused_reason text NOT NULL, refused_at timestamptz NOT NULL DEFAULT now());
CREATE VIEW account_balance AS
  SELECT e.tenant_id, p.account, sum(p.amount_cents) AS balance_cents
  FROM posting p JOIN journal_entry e ON e.id = p.entry_id
  GROUP BY e.tenant_id, p.account;
CREATE FUNCTION assert_running_balance() RETURNS trigger LANGUAGE plpgsql SET search_path = billing, pg_temp AS $$
DECLARE
  before bigint := 0;
BEGIN
  IF NEW.sequence > 1 THEN
    SELECT balance_after_cents INTO before FROM journal_entry WHERE tenant_id = NEW.tenant_id AND sequence = NEW.sequence - 1;
    IF NOT FOUND THEN
      RAISE check_violation USING MESSAGE = format('entry %s: no entry %s of tenant %s before it', NEW.id, NEW.sequence - 1, NEW.tenant_id);
    END IF;
  END IF;
  IF NEW.balance_after_cents <> before + NEW.amount_cents THEN
    RAISE check_violation USING MESSAGE = format('entry %s: balance %s is not %s + %s', NEW.id, NEW.balance_after_cents, before, NEW.amount_cents);
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER running_balance AFTER INSERT ON journal_entry FOR EACH ROW EXECUTE FUNCTION assert_running_balance();
CREATE FUNCTION assert_entry(entry journal_entry) RETURNS void LANGUAGE plpgsql SET search_path = billing, pg_temp AS $$
DECLARE
  total numeric;
  credit bigint;
BEGIN
  SELECT coalesce(sum(amount_cents), 0), coalesce(sum(amount_cents) FILTER (WHERE account = 'credit'), 0)
    INTO total, credit FROM posting WHERE entry_id = entry.id;
  IF total <> 0 OR credit <> entry.amount_cents THEN
    RAISE check_violation USING MESSAGE = format('entry %s of %s: postings sum to %s, credit is %s', entry.id, entry.amount_cents, total, credit);
  END IF;
  IF entry.type = 'usage' AND NOT EXISTS (SELECT FROM coverage WHERE entry_id = entry.id) THEN
    RAISE check_violation USING MESSAGE = format('usage entry %s covers no charges', entry.id);
  END IF;
END $$;
CREATE FUNCTION assert_entry_balanced() RETURNS trigger LANGUAGE plpgsql SET search_path = billing, pg_temp AS $$
BEGIN
  PERFORM assert_entry(NEW);
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER entry_balanced AFTER INSERT ON journal_entry
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION assert_entry_balanced();
CREATE FUNCTION assert_posting_balanced() RETURNS trigger LANGUAGE plpgsql SET search_path = billing, pg_temp AS $$
BEGIN
  PERFORM assert_entry(e) FROM journal_entry e WHERE e.id = NEW.entry_id;
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER posting_balanced AFTER INSERT ON posting
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION assert_posting_balanced();
CREATE FUNCTION assert_coverage() RETURNS trigger LANGUAGE plpgsql SET search_path = billing, pg_temp AS $$
DECLARE
  carried numeric;
  covered bigint;
  charges bigint;
  nanos numeric;
  entry journal_entry;
BEGIN
  SELECT carried_out_nanos INTO carried FROM coverage WHERE tenant_id = NEW.tenant_id AND number = NEW.number - 1;
  IF NEW.carried_in_nanos <> coalesce(carried, 0) OR (carried IS NULL AND NEW.number <> 1) THEN
    RAISE check_violation USING MESSAGE = format('coverage %s of %s breaks the chain: carried in %s, not %s', NEW.number, NEW.tenant_id, NEW.carried_in_nanos, carried);
  END IF;
  SELECT to_seq INTO covered FROM coverage
    WHERE tenant_id = NEW.tenant_id AND period = NEW.period AND from_seq < NEW.from_seq ORDER BY from_seq DESC LIMIT 1;
  IF NEW.from_seq <> coalesce(covered, 0) + 1 THEN
    RAISE check_violation USING MESSAGE = format('coverage %s of %s starts at charge %s of %s, not after %s', NEW.number, NEW.tenant_id, NEW.from_seq, NEW.period, covered);
  END IF;
  SELECT count(*), coalesce(sum(cost_nanos), 0) INTO charges, nanos FROM charge
    WHERE tenant_id = NEW.tenant_id AND period = NEW.period AND seq BETWEEN NEW.from_seq AND NEW.to_seq;
  IF charges <> NEW.to_seq - NEW.from_seq + 1 OR nanos <> NEW.charges_nanos THEN
    RAISE check_violation USING MESSAGE = format('coverage %s of %s: %s charges of %s nanos, not %s', NEW.number, NEW.tenant_id, charges, nanos, NEW.charges_nanos);
  END IF;
  IF NEW.entry_id IS NOT NULL THEN
    SELECT * INTO entry FROM journal_entry WHERE id = NEW.entry_id;
    IF entry.type <> 'usage' OR entry.tenant_id <> NEW.tenant_id OR entry.period <> NEW.period OR entry.amount_cents <> -NEW.amount_cents THEN
      RAISE check_violation USING MESSAGE = format('coverage %s of %s does not fit its entry %s', NEW.number, NEW.tenant_id, NEW.entry_id);
    END IF;
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER coverage_exact AFTER INSERT ON coverage FOR EACH ROW EXECUTE FUNCTION assert_coverage();
CREATE FUNCTION assert_books() RETURNS trigger LANGUAGE plpgsql SET search_path = billing, pg_temp AS $$
DECLARE
  books tenant_books;
  newest journal_entry;
BEGIN
  SELECT * INTO books FROM tenant_books WHERE tenant_id = NEW.tenant_id;
  SELECT * INTO newest FROM journal_entry WHERE tenant_id = NEW.tenant_id ORDER BY sequence DESC LIMIT 1;
  IF books.last_sequence <> coalesce(newest.sequence, 0) OR books.balance_cents <> coalesce(newest.balance_after_cents, 0) THEN
    RAISE check_violation USING MESSAGE = format('books of %s: balance %s at entry %s, the journal says %s at %s',
      NEW.tenant_id, books.balance_cents, books.last_sequence, newest.balance_after_cents, newest.sequence);
  END IF;
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER books_are_the_journals AFTER UPDATE ON tenant_books DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
  WHEN (OLD.balance_cents <> NEW.balance_cents OR OLD.last_sequence <> NEW.last_sequence) EXECUTE FUNCTION assert_books();
CREATE CONSTRAINT TRIGGER journal_moves_the_books AFTER INSERT ON journal_entry
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION assert_books();
CREATE FUNCTION assert_books_advance() RETURNS trigger LANGUAGE plpgsql SET search_path = billing, pg_temp AS $$
BEGIN
  IF NEW.tenant_id <> OLD.tenant_id OR NEW.version < OLD.version OR NEW.last_sequence < OLD.last_sequence OR NEW.last_cover < OLD.last_cover THEN
    RAISE check_violation USING MESSAGE = format('books of %s would go back', OLD.tenant_id);
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER books_advance BEFORE UPDATE ON tenant_books FOR EACH ROW EXECUTE FUNCTION assert_books_advance();
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE insufficient_privilege USING MESSAGE = format('%I is append-only: %s refused; correct by a further entry', TG_TABLE_NAME, TG_OP);
END $$;
DO $$
DECLARE
  name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['charge', 'journal_entry', 'posting', 'coverage'] LOOP
    EXECUTE format('CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON %I FOR EACH ROW EXECUTE FUNCTION refuse_change()', name);
    EXECUTE format('CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON %I FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()', name);
  END LOOP;
END $$;
CREATE TRIGGER append_only BEFORE DELETE ON rejected_charge FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON rejected_charge FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER only_count_up BEFORE UPDATE ON rejected_charge FOR EACH ROW
  WHEN ((OLD.digest, OLD.reason, OLD.data, OLD.first_at) IS DISTINCT FROM (NEW.digest, NEW.reason, NEW.data, NEW.first_at)
    OR NEW.times <= OLD.times OR NEW.last_at < OLD.last_at)
  EXECUTE FUNCTION refuse_change();
DO $$
BEGIN
  CREATE ROLE tollgate_billing NOLOGIN;
EXCEPTION
  WHEN duplicate_object OR unique_violation THEN NULL;
  WHEN insufficient_privilege THEN RAISE NOTICE 'may not create the role tollgate_billing: the journal is append-only by triggers alone';
END $$;
DO $$
BEGIN
  IF NOT (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
    EXECUTE format('GRANT tollgate_billing TO %I', current_user);
  END IF;
EXCEPTION
  WHEN undefined_object OR insufficient_privilege OR unique_violation THEN NULL;
END $$;
DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'tollgate_billing') THEN
    GRANT USAGE ON SCHEMA billing TO tollgate_billing;
    GRANT SELECT ON ALL TABLES IN SCHEMA billing TO tollgate_billing;
    GRANT INSERT ON charge, rejected_charge, journal_entry, posting, coverage TO tollgate_billing;
    GRANT UPDATE (times, last_at) ON rejected_charge TO tollgate_billing;
    GRANT INSERT, UPDATE ON tenant_books, tenant_month TO tollgate_billing;
    GRANT INSERT ON outbox_refused TO tollgate_billing;
    GRANT INSERT, UPDATE, DELETE ON outbox TO tollgate_billing;
  END IF;
END $$;
ALTER TABLE journal_entry ADD COLUMN reason text CHECK (reason <> '');
ALTER TABLE journal_entry ADD CONSTRAINT an_adjustment_says_why CHECK (type <> 'adjustment' OR reason IS NOT NULL);
ALTER TABLE tenant_books ADD COLUMN status_version bigint NOT NULL DEFAULT 0;
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
CREATE TABLE reconcile_run (
  id text COLLATE "C" PRIMARY KEY,
  state text NOT NULL CHECK (state IN ('running', 'done', 'failed')),
  started_at timestamptz NOT NULL DEFAULT now(),
  beat_at timestamptz NOT NULL DEFAULT now(),
  progress jsonb NOT NULL,
  report json,
  reason text
);
DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'tollgate_billing') THEN
    GRANT SELECT, INSERT, UPDATE, DELETE ON reconcile_run TO tollgate_billing;
  END IF;
END $$;
CREATE TABLE budget (
  tenant_id text COLLATE "C" NOT NULL REFERENCES tenant_books,
  key_id text COLLATE "C" NOT NULL,
  version bigint NOT NULL CHECK (version > 0),
  kind text NOT NULL CHECK (kind IN ('amount', 'none', 'default')),
  cents bigint CHECK (cents BETWEEN 0 AND 9007199254740991),
  thresholds smallint[],
  changed_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, key_id),
  CHECK ((kind = 'amount') = (cents IS NOT NULL))
);
CREATE TABLE budget_month (
  tenant_id text COLLATE "C" NOT NULL REFERENCES tenant_books,
  period month NOT NULL,
  key_id text COLLATE "C" NOT NULL,
  spent_nanos numeric(30, 0) NOT NULL CHECK (spent_nanos >= 0),
  default_cents bigint CHECK (default_cents >= 0),
  PRIMARY KEY (tenant_id, period, key_id)
) WITH (fillfactor = 60);
CREATE TABLE budget_event (
  tenant_id text COLLATE "C" NOT NULL REFERENCES tenant_books,
  period month NOT NULL,
  key_id text COLLATE "C" NOT NULL,
  budget_cents bigint NOT NULL,
  threshold_percent smallint NOT NULL,
  spent_nanos numeric(30, 0) NOT NULL,
  id text COLLATE "C" NOT NULL UNIQUE,
  recorded_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, period, key_id, budget_cents, threshold_percent)
);
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON budget_event FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON budget_event FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
INSERT INTO budget_month (tenant_id, period, key_id, spent_nanos)
  SELECT tenant_id, to_char(ended_at AT TIME ZONE 'UTC', 'YYYY-MM'), coalesce(key_id, ''), sum(cost_nanos)
  FROM charge GROUP BY tenant_id, 2, GROUPING SETS ((charge.key_id), ());
DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'tollgate_billing') THEN
    GRANT SELECT, INSERT, UPDATE ON budget, budget_month TO tollgate_billing;
    GRANT SELECT, INSERT ON budget_event TO tollgate_billing;
  END IF;
END $$;
ALTER TABLE tenant_month ADD COLUMN closed_at timestamptz;
CREATE INDEX tenant_month_open ON tenant_month (period, tenant_id) WHERE closed_at IS NULL;
CREATE TABLE invoice_counter (
  issuer text PRIMARY KEY DEFAULT 'tollgate' CHECK (issuer = 'tollgate'),
  last_number bigint NOT NULL DEFAULT 0 CHECK (last_number BETWEEN 0 AND 9007199254740991),
  closed_through month NOT NULL DEFAULT '0001-01'
);
INSERT INTO invoice_counter DEFAULT VALUES;
CREATE TABLE invoice (
  accounting_number bigint PRIMARY KEY CHECK (accounting_number > 0),
  tenant_id text COLLATE "C" NOT NULL,
  period month NOT NULL,
  amount_cents bigint NOT NULL CHECK (amount_cents BETWEEN 1 AND 9007199254740991),
  created_at timestamptz NOT NULL,
  CONSTRAINT invoice_of_a_month UNIQUE (tenant_id, period),
  FOREIGN KEY (tenant_id, period) REFERENCES tenant_month
);
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
CREATE TRIGGER closed_for_good BEFORE UPDATE OR DELETE ON tenant_month FOR EACH ROW WHEN (OLD.closed_at IS NOT NULL) EXECUTE FUNCTION refuse_change();
CREATE FUNCTION assert_month_open() RETURNS trigger LANGUAGE plpgsql SET search_path = billing, pg_temp AS $$
BEGIN
  IF EXISTS (SELECT FROM tenant_month WHERE tenant_id = NEW.tenant_id AND period = NEW.period AND closed_at IS NOT NULL) THEN
    RAISE check_violation USING MESSAGE = format('%s of %s is closed', NEW.period, NEW.tenant_id);
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER month_open AFTER INSERT ON coverage FOR EACH ROW EXECUTE FUNCTION assert_month_open();
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
ALTER TABLE charge ADD COLUMN overrun_nanos bigint NOT NULL DEFAULT 0 CHECK (overrun_nanos >= 0);
ALTER TABLE tenant_books ADD COLUMN overrun_nanos numeric(30, 0) NOT NULL DEFAULT 0 CHECK (overrun_nanos >= 0);
CREATE INDEX charge_overrun ON charge (tenant_id) INCLUDE (overrun_nanos) WHERE overrun_nanos > 0;
ALTER TABLE coverage DROP CONSTRAINT coverage_range, ADD CONSTRAINT coverage_range UNIQUE (tenant_id, period, from_seq) INCLUDE (to_seq, amount_cents);
ALTER TABLE budget_event DISABLE TRIGGER append_only;
DELETE FROM budget_event e WHERE EXISTS (
  SELECT FROM budget_event f
  WHERE (f.tenant_id, f.period, f.key_id, f.threshold_percent) = (e.tenant_id, e.period, e.key_id, e.threshold_percent) AND f.id < e.id);
ALTER TABLE budget_event ENABLE TRIGGER append_only;
ALTER TABLE budget_event DROP CONSTRAINT budget_event_pkey, ADD PRIMARY KEY (tenant_id, period, key_id, threshold_percent);
CREATE TABLE books_currency (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  currency text NOT NULL CHECK (currency ~ '^[A-Z]{3}$')
);
DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'tollgate_billing') THEN
    GRANT SELECT, INSERT, UPDATE ON books_currency TO tollgate_billing;
  END IF;
END $$;
CREATE TABLE journal_chain (
  tenant_id text COLLATE "C" NOT NULL,
  sequence bigint NOT NULL,
  format smallint NOT NULL CHECK (format = 1),
  hash bytea NOT NULL CHECK (length(hash) = 32),
  PRIMARY KEY (tenant_id, sequence),
  FOREIGN KEY (tenant_id, sequence) REFERENCES journal_entry (tenant_id, sequence)
);
CREATE FUNCTION entry_text(entry journal_entry, before bytea) RETURNS text LANGUAGE plpgsql STABLE SET search_path = billing, pg_temp AS $$
BEGIN
  RETURN to_jsonb(ARRAY['tollgate-journal-1', coalesce(encode(before, 'hex'), ''), entry.id, entry.tenant_id, entry.sequence::text, entry.type, entry.amount_cents::text, entry.source, entry.ref,
      encode(entry.input_hash, 'hex'), entry.period, entry.balance_after_cents::text, to_char(entry.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), entry.reason]
    || (SELECT array_agg(account || ':' || amount_cents ORDER BY account COLLATE "C") FROM posting WHERE entry_id = entry.id))::text;
END $$;
CREATE FUNCTION chain_entry() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = billing, pg_temp AS $$
DECLARE
  before bytea;
BEGIN
  IF NEW.sequence > 1 THEN
    SELECT hash INTO before FROM journal_chain WHERE tenant_id = NEW.tenant_id AND sequence = NEW.sequence - 1;
    IF NOT FOUND THEN
      RAISE check_violation USING MESSAGE = format('entry %s: entry %s of tenant %s before it has no hash', NEW.id, NEW.sequence - 1, NEW.tenant_id);
    END IF;
  END IF;
  INSERT INTO journal_chain (tenant_id, sequence, format, hash) VALUES (NEW.tenant_id, NEW.sequence, 1, sha256(convert_to(entry_text(NEW, before), 'UTF8')));
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER entry_chained AFTER INSERT ON journal_entry DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION chain_entry();
CREATE FUNCTION refuse_late_posting() RETURNS trigger LANGUAGE plpgsql SET search_path = billing, pg_temp AS $$
BEGIN
  IF EXISTS (SELECT FROM journal_entry e JOIN journal_chain c USING (tenant_id, sequence) WHERE e.id = NEW.entry_id) THEN
    RAISE insufficient_privilege USING MESSAGE = format('entry %s is booked: it takes no further posting; correct by a further entry', NEW.entry_id);
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER entry_is_open BEFORE INSERT ON posting FOR EACH ROW EXECUTE FUNCTION refuse_late_posting();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON journal_chain FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON journal_chain FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
DO $$
DECLARE
  entry journal_entry;
  before bytea;
  of_tenant text := '';
BEGIN
  FOR entry IN SELECT * FROM journal_entry ORDER BY tenant_id, sequence LOOP
    IF entry.tenant_id <> of_tenant THEN
      of_tenant := entry.tenant_id;
      before := NULL;
    END IF;
    before := sha256(convert_to(entry_text(entry, before), 'UTF8'));
    INSERT INTO journal_chain (tenant_id, sequence, format, hash) VALUES (entry.tenant_id, entry.sequence, 1, before);
  END LOOP;
END $$;
INSERT INTO schema_migration (number, name, checksum) VALUES
  (1, '001_ledger.sql', '6023ff86fb7007079f18f2540aa1f0d17c698dde604702baa8645f396f4afe5a'),
  (2, '002_checks.sql', '9eb550d37cddefccae5783b8087e6789234cba69e6fbdd337c081b50b1bb40a4'),
  (3, '003_append_only.sql', '822aebc56ef26c34cd6e980bc18177e4582b8e6f1809a886ea20550ed4c4b89c'),
  (4, '004_money_out.sql', '6e222d52049cdfac423b4e6b55cacd0a5f2fe3236900d7eac88b58905c1c1772'),
  (5, '005_reconcile_runs.sql', 'e8647132fe2d769049e88cec7c14f18d9049ac85c631ec327cc3ba16c8ff7a0d'),
  (6, '006_budgets.sql', 'f3b3bd3f72048637d510e335ea64e8a8f23e1fbd416cef957dd4a6f551badab9'),
  (7, '007_invoices.sql', '83cd162bb387cadda1484cfc1141d6c74ca7e28bfff11dd4468e05017a9c36d8'),
  (8, '008_overrun.sql', '57ccde569afa6183d2978ff24c23c1534abaa985a8c4aad50a84dfadba075619'),
  (9, '009_overrun_index.sql', '64d4e5732eace9d28d1b993d60fd3c3d882bce7222af537fc7886f878bba499f'),
  (10, '010_coverage_amounts.sql', '060d682aa9ceb23d72fc6e1af726a1207e4ea0ac4d9647a861fad5fbdc75f880'),
  (11, '011_thresholds_once.sql', 'ed03c8b24fd1ff56db58b8e03479f2eb8ddb188471408766d4f13e306ef321d6'),
  (12, '012_currency.sql', 'a97cd457d50c3e6ec75b3311a6a8c4f6b34348bc074955e77f225e7310881a9d'),
  (13, '013_journal_chain.sql', 'db548fc148525f37e2e9d7eb2f9aabbe3237610448c01e11d11fc58e684b972b');
