-- formerly sha256 e3dcdbf6d9d8c7484d0cbf2420c23141c8b634cd05736a2e69e7f81f1f9ca275
-- formerly sha256 db548fc148525f37e2e9d7eb2f9aabbe3237610448c01e11d11fc58e684b972b
-- A hash chain over each tenant's journal. The hash of an entry covers all that the entry says, its postings, and the
-- hash before it. So no entry can be changed, removed or inserted unless every later hash changes. `reconcile` computes
-- them again from the rows (reconcile/chain.ts). Heads that were kept elsewhere show if all hashes were computed anew.
--
-- Only the trigger writes here: at commit, when the postings exist, from the stored rows. Nobody has the right to, and
-- no entry can be left out.
CREATE TABLE journal_chain (
  tenant_id text COLLATE "C" NOT NULL,
  sequence bigint NOT NULL,
  -- The hashed text: entry_text of ../functions/journal_chain.sql.
  format smallint NOT NULL CHECK (format = 1),
  hash bytea NOT NULL CHECK (length(hash) = 32),
  PRIMARY KEY (tenant_id, sequence),
  FOREIGN KEY (tenant_id, sequence) REFERENCES journal_entry (tenant_id, sequence)
);

-- Existing entries, in the order of their sequences. ../functions/journal_chain.sql describes format 1 and writes every
-- later hash. The lock keeps new entries out until its trigger exists.
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
