-- All triggers of the schema, each with its table and function.

CREATE TRIGGER revoked_for_good BEFORE UPDATE ON credential FOR EACH ROW
  WHEN ((OLD.revoked_at IS NOT NULL AND NEW.revoked_at IS DISTINCT FROM OLD.revoked_at) OR NEW.version < OLD.version)
  EXECUTE FUNCTION refuse_return();
CREATE TRIGGER revoked_for_good BEFORE UPDATE ON operator_token FOR EACH ROW
  WHEN (OLD.revoked_at IS NOT NULL AND NEW.revoked_at IS DISTINCT FROM OLD.revoked_at)
  EXECUTE FUNCTION refuse_return();

-- Append-only (append_only.sql).
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON audit_log FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON audit_log FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
