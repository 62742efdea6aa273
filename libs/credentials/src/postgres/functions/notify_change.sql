-- A notification says only that something changed; the receiver asks what, as it does on its timer.
CREATE OR REPLACE FUNCTION notify_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('tollgate_credentials', '');
  RETURN NULL;
END $$;
