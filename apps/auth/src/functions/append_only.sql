-- Append-only by triggers, which bind everyone. rights.sql restricts the service further.
CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE insufficient_privilege USING MESSAGE = format('%I is append-only: %s refused', TG_TABLE_NAME, TG_OP);
END $$;
