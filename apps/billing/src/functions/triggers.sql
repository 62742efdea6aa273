-- All triggers of the schema, each with its table and function. Those of one event fire in the order of their names.

-- Append-only (append_only.sql, erasure.sql).
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON charge FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON charge FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON journal_entry FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON journal_entry
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON posting FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON posting FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON coverage FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON coverage FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON budget_event FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON budget_event FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON invoice FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON invoice FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON invoice_void FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON invoice_void FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON journal_chain FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON journal_chain
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only BEFORE DELETE ON audit_log FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only_but_erasure BEFORE UPDATE ON audit_log FOR EACH ROW
  EXECUTE FUNCTION refuse_all_but_erasure();
CREATE TRIGGER erased_at_once BEFORE INSERT ON audit_log FOR EACH ROW
  WHEN (NEW.tenant_id IS NOT NULL) EXECUTE FUNCTION erase_new_row();
CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON audit_log FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON erased_tenant FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON erased_tenant
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- A quarantined message never changes. Its repeats are counted, and a person may dismiss it.
CREATE TRIGGER append_only BEFORE DELETE ON rejected_charge FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON rejected_charge
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER only_count_up BEFORE UPDATE ON rejected_charge FOR EACH ROW
  WHEN ((OLD.digest, OLD.reason, OLD.data, OLD.first_at)
      IS DISTINCT FROM (NEW.digest, NEW.reason, NEW.data, NEW.first_at)
    OR NEW.times < OLD.times OR NEW.last_at < OLD.last_at
    OR (NEW.times = OLD.times AND NEW.dismissed_at IS NOT DISTINCT FROM OLD.dismissed_at))
  EXECUTE FUNCTION refuse_change();
-- A closed month stays closed and unchanged.
CREATE TRIGGER closed_for_good BEFORE UPDATE OR DELETE ON tenant_month FOR EACH ROW
  WHEN (OLD.closed_at IS NOT NULL) EXECUTE FUNCTION refuse_change();

-- Entries and postings (entries.sql).
CREATE TRIGGER running_balance AFTER INSERT ON journal_entry FOR EACH ROW EXECUTE FUNCTION assert_running_balance();
CREATE CONSTRAINT TRIGGER entry_balanced AFTER INSERT ON journal_entry
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION assert_entry_balanced();
CREATE CONSTRAINT TRIGGER posting_balanced AFTER INSERT ON posting
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION assert_posting_balanced();

-- Coverages (coverage.sql).
CREATE TRIGGER coverage_exact AFTER INSERT ON coverage FOR EACH ROW EXECUTE FUNCTION assert_coverage();
CREATE TRIGGER month_open AFTER INSERT ON coverage FOR EACH ROW EXECUTE FUNCTION assert_month_open();

-- The head of the books (books.sql).
CREATE CONSTRAINT TRIGGER books_are_the_journals AFTER UPDATE ON tenant_books DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
  WHEN (OLD.balance_cents <> NEW.balance_cents OR OLD.last_sequence <> NEW.last_sequence)
  EXECUTE FUNCTION assert_books();
CREATE CONSTRAINT TRIGGER journal_moves_the_books AFTER INSERT ON journal_entry
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION assert_books();
CREATE TRIGGER books_advance BEFORE UPDATE ON tenant_books FOR EACH ROW EXECUTE FUNCTION assert_books_advance();

-- Invoices (invoices.sql).
CREATE CONSTRAINT TRIGGER invoice_exact AFTER INSERT ON invoice
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION assert_invoice();
CREATE CONSTRAINT TRIGGER void_reverses AFTER INSERT ON invoice_void
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION assert_reversed();
CREATE TRIGGER counter_advances BEFORE UPDATE ON invoice_counter
  FOR EACH ROW EXECUTE FUNCTION assert_counter_advances();

-- The hash chain (journal_chain.sql).
CREATE CONSTRAINT TRIGGER entry_chained AFTER INSERT ON journal_entry
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION chain_entry();
CREATE TRIGGER entry_is_open BEFORE INSERT ON posting FOR EACH ROW EXECUTE FUNCTION refuse_late_posting();
