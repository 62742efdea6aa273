-- What the service may do in its schema: nothing but this. Applied by every --migrate that finds it changed, as the
-- owner (libs/postgres/src/rights.ts); the whole table, with what is left to whoever has the login:
-- docs/rights-postgres.md, which a test compares.
REVOKE ALL ON SCHEMA metering FROM PUBLIC, tollgate_metering;
REVOKE ALL ON ALL TABLES IN SCHEMA metering FROM PUBLIC, tollgate_metering;
REVOKE ALL ON ALL ROUTINES IN SCHEMA metering FROM PUBLIC, tollgate_metering;
GRANT USAGE ON SCHEMA metering TO tollgate_metering;
-- A later table can be read; who may write it is said here.
GRANT SELECT ON ALL TABLES IN SCHEMA metering TO tollgate_metering;
ALTER DEFAULT PRIVILEGES IN SCHEMA metering GRANT SELECT ON TABLES TO tollgate_metering;

-- Events are written once, through the whole table; its months are made by add_month.
GRANT INSERT ON usage_event TO tollgate_metering;
GRANT EXECUTE ON FUNCTION add_month(int, int) TO tollgate_metering;

-- Sums only grow, and what they are of never changes.
GRANT INSERT, UPDATE (requests, prompt_tokens, cached_tokens, completion_tokens, estimated, cost_nanos) ON usage_hour TO tollgate_metering;
GRANT INSERT, UPDATE (events, cost_nanos) ON tenant_sum TO tollgate_metering;
GRANT INSERT, UPDATE (requests, estimated, prompt_tokens, cached_tokens, completion_tokens, early_prompt_tokens, early_completion_tokens, late_prompt_tokens, late_completion_tokens)
  ON backend_hour TO tollgate_metering;
GRANT INSERT, DELETE ON backend_unbilled TO tollgate_metering;
GRANT INSERT, UPDATE ON engine_sample, engine_hour TO tollgate_metering;

GRANT INSERT, UPDATE (reason, times, last_at, price_version) ON rejected_event TO tollgate_metering;
GRANT INSERT, UPDATE, DELETE ON outbox TO tollgate_metering;
GRANT INSERT ON outbox_refused TO tollgate_metering;

-- Prices that were in force, for good.
GRANT INSERT ON price_version TO tollgate_metering;
