-- All rights of the service in its schema. Every --migrate applies this file as the owner when it has changed
-- (libs/postgres/src/rights.ts). docs/rights-postgres.md has the whole table, and what an attacker with the login can
-- still do; a test compares it.
REVOKE ALL ON SCHEMA billing FROM PUBLIC, tollgate_billing;
REVOKE ALL ON ALL TABLES IN SCHEMA billing FROM PUBLIC, tollgate_billing;
REVOKE ALL ON ALL ROUTINES IN SCHEMA billing FROM PUBLIC, tollgate_billing;
GRANT USAGE ON SCHEMA billing TO tollgate_billing;
-- The service may read a new table at once. Rights to write are granted here.
GRANT SELECT ON ALL TABLES IN SCHEMA billing TO tollgate_billing;
ALTER DEFAULT PRIVILEGES IN SCHEMA billing GRANT SELECT ON TABLES TO tollgate_billing;

-- Append-only. Only its trigger writes journal_chain.
GRANT INSERT ON charge, journal_entry, posting, coverage, invoice, invoice_void, budget_event, audit_log, outbox_refused
  TO tollgate_billing;
GRANT EXECUTE ON FUNCTION assert_entry(journal_entry) TO tollgate_billing;
-- Erases the people of a tenant, or a person of the console, from the audit log, with the owner's rights.
-- Previous version: erase_tenant, erase_person.
GRANT EXECUTE ON FUNCTION erase_changes(text, text, integer), erase_changes_of_person(text, integer), erase_tenant(text),
  erase_person(text) TO tollgate_billing;

-- Running state. The tenant of a row never changes.
GRANT INSERT,
  UPDATE (
    version, balance_cents, last_sequence, last_cover, carried_nanos, gathered_nanos, overrun_nanos,
    suspended, status_version, last_posted_at, due_at
  )
  ON tenant_books TO tollgate_billing;
GRANT INSERT, UPDATE (last_seq, covered_seq, gathered_nanos, debited_cents, closed_at)
  ON tenant_month TO tollgate_billing;
GRANT UPDATE (last_number, closed_through) ON invoice_counter TO tollgate_billing;
GRANT INSERT, UPDATE (version, kind, cents, thresholds, changed_at) ON budget TO tollgate_billing;
GRANT INSERT, UPDATE (spent_nanos, default_cents, crossed) ON budget_month TO tollgate_billing;
GRANT INSERT, UPDATE (currency) ON books_currency TO tollgate_billing;
GRANT INSERT, UPDATE (times, last_at) ON rejected_charge TO tollgate_billing;

GRANT INSERT, DELETE ON withdrawal_intent TO tollgate_billing;
GRANT INSERT, UPDATE (state, beat_at, progress, report, reason), DELETE ON reconcile_run TO tollgate_billing;
GRANT INSERT, UPDATE, DELETE ON outbox TO tollgate_billing;
