-- formerly sha256 db548fc148525f37e2e9d7eb2f9aabbe3237610448c01e11d11fc58e684b972b
-- A hash chain over each tenant's journal: the hash of an entry is of all that it says, of its postings, and of the
-- hash before it. So nothing of an entry can be changed, taken away or put between others without every later hash
-- being another: `reconcile` works them out again from the rows (reconcile/chain.ts), and heads that were kept
-- elsewhere show where all of them were worked out anew.
--
-- Written by the trigger alone, at commit, when the postings are there, from what is really stored: nobody has the
-- right to, and none can be forgotten.
CREATE TABLE journal_chain (
  tenant_id text COLLATE "C" NOT NULL,
  sequence bigint NOT NULL,
  -- Which text is hashed: entry_text of ../functions/journal_chain.sql.
  format smallint NOT NULL CHECK (format = 1),
  hash bytea NOT NULL CHECK (length(hash) = 32),
  PRIMARY KEY (tenant_id, sequence),
  FOREIGN KEY (tenant_id, sequence) REFERENCES journal_entry (tenant_id, sequence)
);

-- What is there already, in the order of the sequences: format 1 as ../functions/journal_chain.sql describes it, which
-- writes every later hash. No entry comes meanwhile, until that trigger is there.
LOCK TABLE journal_entry IN SHARE ROW EXCLUSIVE MODE;
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
    before := sha256(convert_to((
      to_jsonb(ARRAY[
        'tollgate-journal-1', coalesce(encode(before, 'hex'), ''), entry.id, entry.tenant_id, entry.sequence::text,
        entry.type, entry.amount_cents::text, entry.source, entry.ref, encode(entry.input_hash, 'hex'), entry.period,
        entry.balance_after_cents::text, to_char(entry.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
        entry.reason]
      || (SELECT array_agg(account || ':' || amount_cents ORDER BY account COLLATE "C")
          FROM posting WHERE entry_id = entry.id)))::text, 'UTF8'));
    INSERT INTO journal_chain (tenant_id, sequence, format, hash) VALUES (entry.tenant_id, entry.sequence, 1, before);
  END LOOP;
END $$;
