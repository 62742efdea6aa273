-- The sums of the past also count how requests ended: what failed, and what its client closed. And those without keys
-- follow three hours after the end of each hour, not after the end of a day (record/usage-days.ts). All begin anew. Until
-- they are complete again, queries read usage_hour and the events. No default: a process of the former version, which
-- does not count, cannot write there any more.
-- Processes of the former version go on. All locks come first, in an order in which nobody waits for a lock of the other:
-- recording takes usage_folded before the sums, and needs ROW SHARE for it; queries take the sums before usage_folded.
LOCK TABLE usage_folded IN EXCLUSIVE MODE;
LOCK TABLE usage_day, model_hour, usage_folded;
ALTER TABLE usage_folded ADD COLUMN hours_until timestamptz NOT NULL DEFAULT '-infinity';
COMMENT ON COLUMN usage_folded.until IS 'Every hour before it is in usage_day and in key_day. The beginning of a day.';
COMMENT ON COLUMN usage_folded.hours_until IS 'Every hour before it is in model_hour.';
UPDATE usage_folded SET until = '-infinity';
TRUNCATE usage_day, model_hour;
ALTER TABLE usage_day ADD COLUMN failed bigint NOT NULL, ADD COLUMN client_closed bigint NOT NULL;
ALTER TABLE model_hour ADD COLUMN failed bigint NOT NULL, ADD COLUMN client_closed bigint NOT NULL;

-- Sums of the same days without models. To find the first of thousands of keys, a query reads all of them, and each uses
-- several models.
CREATE TABLE key_day (
  tenant_id text COLLATE "C" NOT NULL,
  day timestamptz NOT NULL,
  key_id text COLLATE "C" NOT NULL,
  requests bigint NOT NULL,
  prompt_tokens bigint NOT NULL,
  cached_tokens bigint NOT NULL,
  completion_tokens bigint NOT NULL,
  reasoning_tokens bigint NOT NULL,
  estimated bigint NOT NULL,
  cost_nanos numeric NOT NULL,
  failed bigint NOT NULL,
  client_closed bigint NOT NULL,
  PRIMARY KEY (tenant_id, day, key_id)
);
