-- A notification only says that something changed. The receiver then asks what, as it does on its timer.
CREATE OR REPLACE FUNCTION notify_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('tollgate_credentials', '');
  RETURN NULL;
END $$;
