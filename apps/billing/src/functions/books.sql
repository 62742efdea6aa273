-- Rules of the database for the head of a tenant's books.

-- At commit: the head of the books agrees with the newest entry.
CREATE OR REPLACE FUNCTION assert_books() RETURNS trigger LANGUAGE plpgsql SET search_path = billing, pg_temp AS $$
DECLARE
  books tenant_books;
  newest journal_entry;
BEGIN
  SELECT * INTO books FROM tenant_books WHERE tenant_id = NEW.tenant_id;
  SELECT * INTO newest FROM journal_entry WHERE tenant_id = NEW.tenant_id ORDER BY sequence DESC LIMIT 1;
  IF books.last_sequence <> coalesce(newest.sequence, 0)
      OR books.balance_cents <> coalesce(newest.balance_after_cents, 0) THEN
    RAISE check_violation USING MESSAGE = format('books of %s: balance %s at entry %s, the journal says %s at %s',
      NEW.tenant_id, books.balance_cents, books.last_sequence, newest.balance_after_cents, newest.sequence);
  END IF;
  RETURN NULL;
END $$;

-- Versions and numbers never go back.
CREATE OR REPLACE FUNCTION assert_books_advance() RETURNS trigger
LANGUAGE plpgsql SET search_path = billing, pg_temp AS $$
BEGIN
  IF NEW.tenant_id <> OLD.tenant_id OR NEW.version < OLD.version
      OR NEW.last_sequence < OLD.last_sequence OR NEW.last_cover < OLD.last_cover THEN
    RAISE check_violation USING MESSAGE = format('books of %s would go back', OLD.tenant_id);
  END IF;
  RETURN NEW;
END $$;
