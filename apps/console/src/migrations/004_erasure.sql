-- An account that is gone, and that auth and billing have yet to forget. They are asked again when it is due, because
-- requests of the person that were under way at its end may have written its name afterwards.
CREATE TABLE erasure (
  user_id text PRIMARY KEY,
  email text NOT NULL,
  -- Who erased it. A person who erases itself has no name here.
  author jsonb NOT NULL,
  due_at timestamptz NOT NULL
);
