-- How a request ran, for explanations (docs/decisions/0028-explained-requests.md): a JSON object of a few numbers and
-- names, which nothing computes with. Null: its gateway died, or was of an earlier version.
ALTER TABLE usage_event ADD COLUMN life text COLLATE "C";

-- Requests without usage: refused, failed before any output, or left by their clients before that. A sample of the last
-- days; refusal_hour has their whole number.
CREATE TABLE refused_request (
  -- Of the request. Ascends with time, so that old rows are a range.
  id text COLLATE "C" PRIMARY KEY,
  tenant_id text COLLATE "C" NOT NULL,
  key_id text COLLATE "C" NOT NULL,
  caller_request_id text COLLATE "C",
  at timestamptz NOT NULL,
  -- An error code of the inference API, or client_closed.
  code text COLLATE "C" NOT NULL,
  model text COLLATE "C",
  -- A JSON object: what refused it, its hold, and the attempts at backends.
  detail text COLLATE "C" NOT NULL
);
CREATE INDEX refused_request_caller ON refused_request (caller_request_id, id) WHERE caller_request_id IS NOT NULL;
CREATE INDEX refused_request_key ON refused_request (key_id, id);
