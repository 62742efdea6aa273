-- All triggers of the schema, each with its table and function.

CREATE TRIGGER revoked_for_good BEFORE UPDATE ON credential FOR EACH ROW
  WHEN ((OLD.revoked_at IS NOT NULL AND NEW.revoked_at IS DISTINCT FROM OLD.revoked_at) OR NEW.version < OLD.version)
  EXECUTE FUNCTION refuse_return();
CREATE TRIGGER revoked_for_good BEFORE UPDATE ON operator_token FOR EACH ROW
  WHEN (OLD.revoked_at IS NOT NULL AND NEW.revoked_at IS DISTINCT FROM OLD.revoked_at)
  EXECUTE FUNCTION refuse_return();

CREATE TRIGGER closed_for_good BEFORE UPDATE ON tenant FOR EACH ROW
  WHEN ((OLD.closed_at IS NOT NULL AND NEW.closed_at IS DISTINCT FROM OLD.closed_at)
    OR (OLD.erased_at IS NOT NULL AND NEW.erased_at IS DISTINCT FROM OLD.erased_at)
    OR NEW.status_version < OLD.status_version)
  EXECUTE FUNCTION refuse_reopening();

-- Append-only (append_only.sql, erasure.sql).
CREATE TRIGGER append_only BEFORE DELETE ON audit_log FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only_but_erasure BEFORE UPDATE ON audit_log FOR EACH ROW
  EXECUTE FUNCTION refuse_all_but_erasure();
CREATE TRIGGER erased_at_once BEFORE INSERT ON audit_log FOR EACH ROW
  WHEN (NEW.tenant_id IS NOT NULL) EXECUTE FUNCTION erase_new_row();
CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON audit_log FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
