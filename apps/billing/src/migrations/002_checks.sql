-- What the database itself refuses, whoever writes: the second assertion of each invariant after the code's own.

-- The running balance: every entry continues the one before it.
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

-- At commit: the postings of an entry sum to zero, that to `credit` is its amount, and a usage entry says what it covers.
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

-- A posting that is added to an entry later.
CREATE FUNCTION assert_posting_balanced() RETURNS trigger LANGUAGE plpgsql SET search_path = billing, pg_temp AS $$
BEGIN
  PERFORM assert_entry(e) FROM journal_entry e WHERE e.id = NEW.entry_id;
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER posting_balanced AFTER INSERT ON posting
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION assert_posting_balanced();

-- A coverage continues the chain, names charges that exist, and sums them right.
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

-- At commit: the head of the books says what the newest entry says.
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

-- Versions only go up, and the numbering never goes back.
CREATE FUNCTION assert_books_advance() RETURNS trigger LANGUAGE plpgsql SET search_path = billing, pg_temp AS $$
BEGIN
  IF NEW.tenant_id <> OLD.tenant_id OR NEW.version < OLD.version OR NEW.last_sequence < OLD.last_sequence OR NEW.last_cover < OLD.last_cover THEN
    RAISE check_violation USING MESSAGE = format('books of %s would go back', OLD.tenant_id);
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER books_advance BEFORE UPDATE ON tenant_books FOR EACH ROW EXECUTE FUNCTION assert_books_advance();
