-- All rights of the service in its schema. Every --migrate applies this file as the owner when it has changed
-- (libs/postgres/src/rights.ts). docs/rights-postgres.md has the whole table, and what an attacker with the login can
-- still do; a test compares it.
REVOKE ALL ON SCHEMA metering FROM PUBLIC, tollgate_metering;
REVOKE ALL ON ALL TABLES IN SCHEMA metering FROM PUBLIC, tollgate_metering;
REVOKE ALL ON ALL ROUTINES IN SCHEMA metering FROM PUBLIC, tollgate_metering;
GRANT USAGE ON SCHEMA metering TO tollgate_metering;
-- The service may read a new table at once. Rights to write are granted here.
GRANT SELECT ON ALL TABLES IN SCHEMA metering TO tollgate_metering;
ALTER DEFAULT PRIVILEGES IN SCHEMA metering GRANT SELECT ON TABLES TO tollgate_metering;

-- Events are written once, through the parent table. add_month makes its months, index_partition their indexes.
GRANT INSERT ON usage_event TO tollgate_metering;
GRANT EXECUTE ON FUNCTION add_month(int, int), index_partition() TO tollgate_metering;

-- The end of a month, step by step. Each function checks its conditions.
GRANT EXECUTE ON FUNCTION kept_from(), close_month(int), sum_month(), drop_month(), forget_callers(int),
  confirm_month(date, bigint, numeric, numeric) TO tollgate_metering;

-- Written once, with their events.
GRANT INSERT ON caller_request TO tollgate_metering;

-- Sums only grow. Their keys never change.
GRANT INSERT, UPDATE (requests, prompt_tokens, cached_tokens, completion_tokens, estimated, cost_nanos, reasoning_tokens)
  ON usage_hour TO tollgate_metering;
GRANT INSERT,
  UPDATE (
    requests, prompt_tokens, cached_tokens, completion_tokens, estimated, cost_nanos, reasoning_tokens, failed,
    client_closed
  )
  ON usage_day, key_day, model_hour TO tollgate_metering;
GRANT UPDATE (until, hours_until) ON usage_folded TO tollgate_metering;
GRANT INSERT, UPDATE (events, cost_nanos) ON tenant_sum TO tollgate_metering;
-- Deleted when no comparison reads them any more.
GRANT INSERT,
  UPDATE (
    requests, estimated, prompt_tokens, cached_tokens, completion_tokens,
    early_prompt_tokens, early_completion_tokens, late_prompt_tokens, late_completion_tokens
  ),
  DELETE
  ON backend_hour TO tollgate_metering;
GRANT INSERT, DELETE ON backend_unbilled TO tollgate_metering;
GRANT INSERT, UPDATE (healthy, open_breakers, in_flight, reported_at), DELETE ON backend_report TO tollgate_metering;
GRANT INSERT, UPDATE (requests), DELETE ON refusal_hour TO tollgate_metering;
-- Written once, and deleted after some days.
GRANT INSERT, DELETE ON refused_request TO tollgate_metering;
GRANT INSERT, UPDATE ON engine_sample TO tollgate_metering;
GRANT INSERT, UPDATE, DELETE ON engine_hour TO tollgate_metering;

GRANT INSERT, UPDATE (reason, times, last_at, price_version) ON rejected_event TO tollgate_metering;
GRANT INSERT, UPDATE, DELETE ON outbox TO tollgate_metering;
GRANT INSERT ON outbox_refused TO tollgate_metering;

-- All prices that were ever in force.
GRANT INSERT ON price_version TO tollgate_metering;
