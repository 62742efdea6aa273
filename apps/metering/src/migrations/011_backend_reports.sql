-- Backends as gateway processes see them now (docs/decisions/0032-console-pages.md). A process reports every few seconds,
-- and its rows are gone soon after its last report.
CREATE TABLE backend_report (
  -- The gateway process.
  source text COLLATE "C" NOT NULL,
  backend text COLLATE "C" NOT NULL,
  healthy boolean NOT NULL,
  open_breakers integer NOT NULL,
  in_flight integer NOT NULL,
  reported_at timestamptz NOT NULL,
  PRIMARY KEY (source, backend)
) WITH (fillfactor = 50);
