-- What is revoked stays so, and from when: also for whoever has the service's login, which may write the column. Versions only go up, as the edge keeps the newest.
CREATE FUNCTION refuse_return() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE insufficient_privilege USING MESSAGE = format('credential %s: what is revoked stays revoked, and versions only go up', OLD.id);
END $$;
CREATE TRIGGER revoked_for_good BEFORE UPDATE ON credential FOR EACH ROW
  WHEN ((OLD.revoked_at IS NOT NULL AND NEW.revoked_at IS DISTINCT FROM OLD.revoked_at) OR NEW.version < OLD.version) EXECUTE FUNCTION refuse_return();
