/**
 * The outbox of a service, and the table for rows that can never be published, with the reason. The migrations of each
 * service with an outbox contain these statements verbatim.
 */
export const OUTBOX_TABLE_SQL = `\
CREATE TABLE outbox (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  topic text NOT NULL,
  data jsonb NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE outbox_refused (
  id bigint PRIMARY KEY,
  topic text NOT NULL,
  data jsonb NOT NULL,
  created_at timestamptz NOT NULL,
  refused_reason text NOT NULL,
  refused_at timestamptz NOT NULL DEFAULT now()
);
`;
