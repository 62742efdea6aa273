-- All triggers of the schema, each with its table and function.

CREATE TRIGGER revoked_for_good BEFORE UPDATE ON credential FOR EACH ROW
  WHEN ((OLD.revoked_at IS NOT NULL AND NEW.revoked_at IS DISTINCT FROM OLD.revoked_at) OR NEW.version < OLD.version)
  EXECUTE FUNCTION refuse_return();
CREATE TRIGGER revoked_for_good BEFORE UPDATE ON operator_token FOR EACH ROW
  WHEN (OLD.revoked_at IS NOT NULL AND NEW.revoked_at IS DISTINCT FROM OLD.revoked_at)
  EXECUTE FUNCTION refuse_return();
