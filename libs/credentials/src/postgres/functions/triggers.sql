-- All triggers of the schema: which function fires on which table.

CREATE TRIGGER notify_change AFTER INSERT OR UPDATE ON credential FOR EACH STATEMENT EXECUTE FUNCTION notify_change();
