-- The hash chain over each tenant's journal (table journal_chain). Only the trigger writes it, at commit, from the
-- stored entry and its postings. No login has the right to write it, and no entry can be missed.

-- Format 1: the hash is SHA-256 of a JSON array of strings and nulls, in UTF-8, with a comma and a blank between two.
-- The array holds `tollgate-journal-1`, the hash before it in hex ('' for the first entry), the columns of the entry in
-- their order, and a string for each posting, `account:cents`, in the order of the accounts. Numbers are decimal, bytes
-- hex, times as 2026-11-22T10:11:12.123456Z.
CREATE OR REPLACE FUNCTION entry_text(entry journal_entry, before bytea) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = billing, pg_temp AS $$
BEGIN
  RETURN to_jsonb(ARRAY[
      'tollgate-journal-1', coalesce(encode(before, 'hex'), ''), entry.id, entry.tenant_id, entry.sequence::text,
      entry.type, entry.amount_cents::text, entry.source, entry.ref, encode(entry.input_hash, 'hex'), entry.period,
      entry.balance_after_cents::text, to_char(entry.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
      entry.reason]
    || (SELECT array_agg(account || ':' || amount_cents ORDER BY account COLLATE "C")
        FROM posting WHERE entry_id = entry.id))::text;
END $$;

CREATE OR REPLACE FUNCTION chain_entry() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = billing, pg_temp AS $$
DECLARE
  before bytea;
BEGIN
  IF NEW.sequence > 1 THEN
    SELECT hash INTO before FROM journal_chain WHERE tenant_id = NEW.tenant_id AND sequence = NEW.sequence - 1;
    IF NOT FOUND THEN
      RAISE check_violation USING MESSAGE = format(
        'entry %s: entry %s of tenant %s before it has no hash',
        NEW.id, NEW.sequence - 1, NEW.tenant_id);
    END IF;
  END IF;
  INSERT INTO journal_chain (tenant_id, sequence, format, hash)
    VALUES (NEW.tenant_id, NEW.sequence, 1, sha256(convert_to(entry_text(NEW, before), 'UTF8')));
  RETURN NULL;
END $$;

-- A chained entry gets no further posting. Two that cancel each other would leave its sum unchanged.
CREATE OR REPLACE FUNCTION refuse_late_posting() RETURNS trigger
LANGUAGE plpgsql SET search_path = billing, pg_temp AS $$
BEGIN
  IF EXISTS (
    SELECT FROM journal_entry e JOIN journal_chain c USING (tenant_id, sequence) WHERE e.id = NEW.entry_id
  ) THEN
    RAISE insufficient_privilege USING MESSAGE = format(
      'entry %s is booked: it takes no further posting; add a correcting entry',
      NEW.entry_id);
  END IF;
  RETURN NEW;
END $$;
