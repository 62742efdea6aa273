-- The rows of a person, for its erasure: those that it made, that changed it, and that have its address.
CREATE INDEX audit_log_author ON audit_log (author_id) WHERE author_kind = 'person';
CREATE INDEX audit_log_target ON audit_log (target);
CREATE INDEX audit_log_names ON audit_log USING gin (
  (ARRAY[lower(before ->> 'name'), lower(after ->> 'name'), lower(before ->> 'owner'), lower(after ->> 'owner')]));
