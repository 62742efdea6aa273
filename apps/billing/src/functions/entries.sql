-- Rules of the database for journal entries and postings, for every writer. The code asserts each of them first.

-- The running balance: every entry continues the one before it.
CREATE OR REPLACE FUNCTION assert_running_balance() RETURNS trigger
LANGUAGE plpgsql SET search_path = billing, pg_temp AS $$
DECLARE
  before bigint := 0;
BEGIN
  IF NEW.sequence > 1 THEN
    SELECT balance_after_cents INTO before
      FROM journal_entry WHERE tenant_id = NEW.tenant_id AND sequence = NEW.sequence - 1;
    IF NOT FOUND THEN
      RAISE check_violation USING MESSAGE = format(
        'entry %s: no entry %s of tenant %s before it',
        NEW.id, NEW.sequence - 1, NEW.tenant_id);
    END IF;
  END IF;
  IF NEW.balance_after_cents <> before + NEW.amount_cents THEN
    RAISE check_violation USING MESSAGE = format(
      'entry %s: balance %s is not %s + %s',
      NEW.id, NEW.balance_after_cents, before, NEW.amount_cents);
  END IF;
  RETURN NULL;
END $$;

-- At commit: the postings of an entry sum to zero, the posting to `credit` is its amount, and a usage entry has its
-- coverage.
CREATE OR REPLACE FUNCTION assert_entry(entry journal_entry) RETURNS void
LANGUAGE plpgsql SET search_path = billing, pg_temp AS $$
DECLARE
  total numeric;
  credit bigint;
BEGIN
  SELECT coalesce(sum(amount_cents), 0), coalesce(sum(amount_cents) FILTER (WHERE account = 'credit'), 0)
    INTO total, credit FROM posting WHERE entry_id = entry.id;
  IF total <> 0 OR credit <> entry.amount_cents THEN
    RAISE check_violation USING MESSAGE = format(
      'entry %s of %s: postings sum to %s, credit is %s',
      entry.id, entry.amount_cents, total, credit);
  END IF;
  IF entry.type = 'usage' AND NOT EXISTS (SELECT FROM coverage WHERE entry_id = entry.id) THEN
    RAISE check_violation USING MESSAGE = format('usage entry %s covers no charges', entry.id);
  END IF;
END $$;

CREATE OR REPLACE FUNCTION assert_entry_balanced() RETURNS trigger
LANGUAGE plpgsql SET search_path = billing, pg_temp AS $$
BEGIN
  PERFORM assert_entry(NEW);
  RETURN NULL;
END $$;

-- Checks the entry again when a posting is added later.
CREATE OR REPLACE FUNCTION assert_posting_balanced() RETURNS trigger
LANGUAGE plpgsql SET search_path = billing, pg_temp AS $$
BEGIN
  PERFORM assert_entry(e) FROM journal_entry e WHERE e.id = NEW.entry_id;
  RETURN NULL;
END $$;

-- Balances of all accounts, for people and for reconcile.
CREATE OR REPLACE VIEW account_balance AS
  SELECT e.tenant_id, p.account, sum(p.amount_cents) AS balance_cents
  FROM posting p JOIN journal_entry e ON e.id = p.entry_id
  GROUP BY e.tenant_id, p.account;
