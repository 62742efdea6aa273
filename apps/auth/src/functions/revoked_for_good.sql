-- A revocation and its time are final. Versions only go up, because the edge keeps the newest. The trigger also binds
-- the service's login, which may write these columns.
CREATE OR REPLACE FUNCTION refuse_return() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE insufficient_privilege USING MESSAGE = format(
    'credential %s: what is revoked stays revoked, and versions only go up',
    OLD.id);
END $$;
