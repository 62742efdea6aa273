-- Tokens of people and programs that operate Tollgate. They belong to no tenant, and no edge knows them: the operator
-- API asks auth.
CREATE TABLE operator_token (
  id text COLLATE "C" PRIMARY KEY CHECK (id ~ '^opr_[0-9a-z]{26}$'),
  name text NOT NULL CHECK (name = btrim(name) AND char_length(name) BETWEEN 1 AND 100),
  hash text COLLATE "C" NOT NULL UNIQUE CHECK (hash ~ '^[0-9a-f]{64}$'),
  last4 text NOT NULL CHECK (char_length(last4) = 4),
  scopes text[] NOT NULL CHECK (cardinality(scopes) > 0),
  created_at timestamptz(3) NOT NULL DEFAULT now(),
  expires_at timestamptz(3),
  revoked_at timestamptz(3),
  last_used_at timestamptz(3)
);
-- A name says who did something, so no two tokens in force share one.
CREATE UNIQUE INDEX operator_token_name ON operator_token (name) WHERE revoked_at IS NULL;
