-- Rules of the database for coverages.

-- A coverage continues the chain, names charges that exist, and has their sum.
CREATE OR REPLACE FUNCTION assert_coverage() RETURNS trigger LANGUAGE plpgsql SET search_path = billing, pg_temp AS $$
DECLARE
  carried numeric;
  covered bigint;
  charges bigint;
  nanos numeric;
  entry journal_entry;
BEGIN
  SELECT carried_out_nanos INTO carried FROM coverage WHERE tenant_id = NEW.tenant_id AND number = NEW.number - 1;
  IF NEW.carried_in_nanos <> coalesce(carried, 0) OR (carried IS NULL AND NEW.number <> 1) THEN
    RAISE check_violation USING MESSAGE = format(
      'coverage %s of %s breaks the chain: carried in %s, not %s',
      NEW.number, NEW.tenant_id, NEW.carried_in_nanos, carried);
  END IF;
  SELECT to_seq INTO covered FROM coverage
    WHERE tenant_id = NEW.tenant_id AND period = NEW.period AND from_seq < NEW.from_seq ORDER BY from_seq DESC LIMIT 1;
  IF NEW.from_seq <> coalesce(covered, 0) + 1 THEN
    RAISE check_violation USING MESSAGE = format(
      'coverage %s of %s starts at charge %s of %s, not after %s',
      NEW.number, NEW.tenant_id, NEW.from_seq, NEW.period, covered);
  END IF;
  SELECT count(*), coalesce(sum(cost_nanos), 0) INTO charges, nanos FROM charge
    WHERE tenant_id = NEW.tenant_id AND period = NEW.period AND seq BETWEEN NEW.from_seq AND NEW.to_seq;
  IF charges <> NEW.to_seq - NEW.from_seq + 1 OR nanos <> NEW.charges_nanos THEN
    RAISE check_violation USING MESSAGE = format(
      'coverage %s of %s: %s charges of %s nanos, not %s',
      NEW.number, NEW.tenant_id, charges, nanos, NEW.charges_nanos);
  END IF;
  IF NEW.entry_id IS NOT NULL THEN
    SELECT * INTO entry FROM journal_entry WHERE id = NEW.entry_id;
    IF entry.type <> 'usage' OR entry.tenant_id <> NEW.tenant_id OR entry.period <> NEW.period
        OR entry.amount_cents <> -NEW.amount_cents THEN
      RAISE check_violation USING MESSAGE = format(
        'coverage %s of %s does not fit its entry %s',
        NEW.number, NEW.tenant_id, NEW.entry_id);
    END IF;
  END IF;
  RETURN NULL;
END $$;

-- A closed month never changes. Its late charges belong to the running month.
CREATE OR REPLACE FUNCTION assert_month_open() RETURNS trigger LANGUAGE plpgsql SET search_path = billing, pg_temp AS $$
BEGIN
  IF EXISTS (
    SELECT FROM tenant_month
    WHERE tenant_id = NEW.tenant_id AND period = NEW.period AND closed_at IS NOT NULL
  ) THEN
    RAISE check_violation USING MESSAGE = format('%s of %s is closed', NEW.period, NEW.tenant_id);
  END IF;
  RETURN NULL;
END $$;
