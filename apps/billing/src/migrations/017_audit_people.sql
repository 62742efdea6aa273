-- The rows that a person made, for its erasure.
CREATE INDEX audit_log_author ON audit_log (author_id) WHERE author_kind = 'person';
