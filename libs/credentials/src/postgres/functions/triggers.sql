-- Which function fires on which table: all triggers of the schema.

CREATE TRIGGER notify_change AFTER INSERT OR UPDATE ON credential FOR EACH STATEMENT EXECUTE FUNCTION notify_change();
