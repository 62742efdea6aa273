-- A hash chain over each tenant's journal: the hash of an entry is of all that it says, of its postings, and of the hash before it. So nothing of an entry can be changed, taken away or put between others without
-- every later hash being another: `reconcile` works them out again from the rows (reconcile/chain.ts), and heads that were kept elsewhere show where all of them were worked out anew.
--
-- Written by the trigger alone, at commit, when the postings are there, from what is really stored: nobody has the right to, and none can be forgotten.
CREATE TABLE journal_chain (
  tenant_id text COLLATE "C" NOT NULL,
  sequence bigint NOT NULL,
  -- Which text is hashed: entry_text.
  format smallint NOT NULL CHECK (format = 1),
  hash bytea NOT NULL CHECK (length(hash) = 32),
  PRIMARY KEY (tenant_id, sequence),
  FOREIGN KEY (tenant_id, sequence) REFERENCES journal_entry (tenant_id, sequence)
);

-- Format 1: a JSON array of strings and null, with a comma and a blank between two, in UTF-8; SHA-256 of it is the hash. First `tollgate-journal-1`, the hash before it in hex ('' for the first entry), then the columns of the entry in
-- their order, then a string for each posting, `account:cents`, in the order of the accounts. Numbers in decimal, bytes in hex, times as 2026-11-22T10:11:12.123456Z.
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

-- An entry that is chained has all its postings: two more that cancel each other would leave its sum as it is.
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

-- What is there already, in the order of the sequences. No entry comes meanwhile: the trigger above has the table locked.
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
