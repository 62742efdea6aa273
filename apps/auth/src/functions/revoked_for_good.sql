-- A revocation is final, and so is its time; versions only go up, as the edge keeps the newest. That binds also whoever
-- has the service's login, which may write these columns.
CREATE OR REPLACE FUNCTION refuse_return() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE insufficient_privilege USING MESSAGE = format(
    'credential %s: what is revoked stays revoked, and versions only go up',
    OLD.id);
END $$;
