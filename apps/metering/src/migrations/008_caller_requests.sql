-- The ids that callers chose for their requests (`x-request-id`), for those who look for a request by it. Only such
-- requests have a row, so others cost nothing. A caller may use an id again.
CREATE TABLE caller_request (
  caller_request_id text COLLATE "C" NOT NULL,
  -- Of usage_event. Ascends with time.
  id text COLLATE "C" NOT NULL,
  PRIMARY KEY (caller_request_id, id)
);
