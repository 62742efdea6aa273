-- Serves the search for requests that did not end normally, and their counts by hour: of these few rows only, so it
-- costs next to nothing to keep. ON ONLY: months that exist get it one by one, after the start, each in a transaction
-- of its own (record/partition-indexes.ts). Here, all of them would be locked until the last one is built.
CREATE INDEX usage_event_unfinished ON ONLY usage_event (tenant_id, ended_at) INCLUDE (outcome, model, key_id)
  WHERE outcome <> 'complete';
