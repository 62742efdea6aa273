-- The end of a month of usage_event, in steps that the running service calls: close, sum, confirm, drop. The service
-- owns no table, so these functions run with the owner's rights, and each of them checks its conditions itself.
--
-- Stragglers are events that ended more than two days after their month, for example because a clock was wrong when the
-- request began. They are in the totals of their month, but stay in the default partition until the month in which they
-- ended is dropped. Events with ids from before 2020, for which there are no partitions, are in the default partition
-- from the beginning. They belong to the first month that is retired.

-- The first instant from which usage is known by the request. Before it, only sums by the hour are kept.
CREATE OR REPLACE FUNCTION kept_from() RETURNS timestamptz LANGUAGE sql STABLE SET search_path = metering, pg_temp AS $$
  SELECT coalesce(max(exact_from), '-infinity') FROM retired_month WHERE dropped_at IS NOT NULL
$$;

-- Closes the oldest month for events if it ended at least this many months ago: from now on the database refuses each
-- event with an id of this month or an older one. Returns the month, or null if none is due or another process is at
-- it.
CREATE OR REPLACE FUNCTION close_month(kept_months int) RETURNS date LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = metering, pg_temp SET lock_timeout = '2s' SET timezone = 'UTC' AS $$
DECLARE
  oldest date;
  name text;
  until_id text;
  found_bounds text;
BEGIN
  -- Messages of 90 days may still be delivered again.
  IF kept_months < 3 THEN
    RAISE invalid_parameter_value USING MESSAGE = 'events are kept for at least 3 months';
  END IF;
  IF NOT pg_try_advisory_xact_lock(hashtextextended('tollgate-metering-partitions', 0)) THEN
    RETURN NULL;
  END IF;
  -- The oldest month that has a partition or, in the default partition, an event.
  SELECT min(month) INTO oldest FROM (
    SELECT to_date(substring(relname FROM '^usage_event_(\d{4}_\d\d)$'), 'YYYY_MM') AS month
    FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid WHERE inhparent = 'usage_event'::regclass
    UNION ALL
    SELECT max(m)::date FROM generate_series('2020-01-01Z', now(), interval '1 month') m
    WHERE id_bound(m) <= (
      SELECT min(id) FROM usage_event_default
      WHERE id >= greatest(id_bound('2020-01-01Z'), (SELECT max(r.until_id) FROM retired_month r)))
  ) found
  WHERE month IS NOT NULL AND month NOT IN (SELECT retired_month.month FROM retired_month);
  IF oldest IS NULL OR oldest + make_interval(months => kept_months + 1) > now() THEN
    RETURN NULL;
  END IF;
  PERFORM add_month(extract(year FROM oldest)::int, extract(month FROM oldest)::int);
  name := 'usage_event_' || to_char(oldest, 'YYYY_MM');
  until_id := id_bound(oldest + interval '1 month');
  SELECT pg_get_expr(relpartbound, oid) INTO found_bounds FROM pg_class WHERE oid = to_regclass(name);
  IF found_bounds <> format('FOR VALUES FROM (%L) TO (%L)', id_bound(oldest), until_id) THEN
    RAISE object_not_in_prerequisite_state USING MESSAGE = format('%s is not of one month: %s', name, found_bounds);
  END IF;
  -- An event of this month is refused here now, and in the default partition once this one is dropped. NOT VALID,
  -- because older events that are there already stay.
  EXECUTE format('ALTER TABLE %I ADD CONSTRAINT closed CHECK (false) NOT VALID', name);
  ALTER TABLE usage_event_default DROP CONSTRAINT IF EXISTS closed;
  EXECUTE format('ALTER TABLE usage_event_default ADD CONSTRAINT closed CHECK (id >= %L) NOT VALID', until_id);
  INSERT INTO retired_month (month, from_id, until_id)
    VALUES (oldest, coalesce((SELECT max(r.until_id) FROM retired_month r), ''), until_id);
  RETURN oldest;
END $$;

-- Sums the events of the oldest retired month that is not summed, and compares them with the rollups. Returns null if
-- none remains or another process is summing. Otherwise returns the month, and why it cannot be dropped now: an empty
-- text if it can.
CREATE OR REPLACE FUNCTION sum_month(OUT month date, OUT reason text) LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = metering, pg_temp SET timezone = 'UTC' AS $$
DECLARE
  retired retired_month;
  ends timestamptz;
  exact_since timestamptz;
  -- Of its events except stragglers.
  last_end timestamptz;
  -- An hour more, for ids that are ahead of a clock that was set back.
  ahead_id text;
BEGIN
  -- One at a time, because a month is compared from the end of the one before.
  IF NOT pg_try_advisory_xact_lock(hashtextextended('tollgate-metering-sums', 0)) THEN
    RETURN;
  END IF;
  SELECT * INTO retired FROM retired_month r WHERE summed_at IS NULL ORDER BY r.month LIMIT 1 FOR UPDATE;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  month := retired.month;
  ends := month + interval '1 month';
  ahead_id := id_bound(ends + interval '1 hour');
  SELECT max(ended_at) INTO last_end FROM usage_event e
  WHERE e.id >= retired.from_id AND e.id < retired.until_id AND ended_at < ends + interval '2 days';
  SELECT coalesce(max(exact_from), '-infinity') INTO exact_since FROM retired_month;
  reason := CASE
    WHEN EXISTS (
      SELECT FROM rejected_event q
      WHERE q.dismissed_at IS NULL AND q.event_id >= retired.from_id AND q.event_id < retired.until_id
        AND NOT EXISTS (SELECT FROM usage_event e WHERE e.id = q.event_id))
      THEN 'a quarantined event of this month is open'
    WHEN EXISTS (
      SELECT FROM (
        SELECT tenant_id, date_trunc('hour', ended_at, 'UTC') AS hour, model, key_id, count(*) AS requests,
          sum(prompt_tokens) AS prompt_tokens, sum(cached_tokens) AS cached_tokens,
          sum(completion_tokens) AS completion_tokens, count(*) FILTER (WHERE estimated) AS estimated,
          sum(cost_nanos) AS cost_nanos, sum(reasoning_tokens) AS reasoning_tokens
        FROM (
          SELECT * FROM usage_event e
          WHERE e.id >= retired.from_id AND e.id < ahead_id AND ended_at >= exact_since AND ended_at < ends
          UNION ALL
          -- The few that are further ahead, and the stragglers of older months, tenant by tenant. All these months
          -- would have to be read without the index.
          SELECT e.* FROM tenant_sum t, LATERAL (
            SELECT * FROM usage_event e
            WHERE e.tenant_id = t.tenant_id AND (e.id < retired.from_id OR e.id >= ahead_id)
              AND ended_at >= exact_since AND ended_at < ends
            OFFSET 0) e
        ) ended
        GROUP BY 1, 2, 3, 4
      ) events
      FULL JOIN (SELECT * FROM usage_hour WHERE hour >= exact_since AND hour < ends) kept
        USING (tenant_id, hour, model, key_id)
      WHERE (events.requests, events.prompt_tokens, events.cached_tokens, events.completion_tokens, events.estimated,
          events.cost_nanos, events.reasoning_tokens)
        IS DISTINCT FROM (kept.requests, kept.prompt_tokens, kept.cached_tokens, kept.completion_tokens, kept.estimated,
          kept.cost_nanos, kept.reasoning_tokens))
      THEN 'the rollups are not the sums of its events: run reconcile'
    ELSE '' END;
  IF reason = '' THEN
    UPDATE retired_month r SET summed_at = now(), events = t.events, cost_nanos = t.cost_nanos, digest = t.digest,
      details_digest = t.details_digest,
      exact_from = greatest(ends, date_trunc('hour', last_end, 'UTC') + interval '1 hour')
    FROM (
      SELECT count(*) AS events, coalesce(sum(e.cost_nanos), 0) AS cost_nanos,
        coalesce(sum(hashtextextended(id, hashtextextended(tenant_id, e.cost_nanos))), 0) AS digest,
        coalesce(sum(hashtextextended(id, hashtextextended(key_id, hashint8extended(overrun_nanos,
          (date_part('epoch', ended_at) * 1e6)::bigint)))), 0) AS details_digest
      FROM usage_event e WHERE e.id >= retired.from_id AND e.id < retired.until_id) t
    WHERE r.month = retired.month;
  END IF;
END $$;

-- Billing's totals of its charges with the ids of this month. True if they are those of the events.
CREATE OR REPLACE FUNCTION confirm_month(of_month date, of_events bigint, of_cost_nanos numeric, of_digest numeric)
RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER SET search_path = metering, pg_temp AS $$
BEGIN
  UPDATE retired_month SET confirmed_at = coalesce(confirmed_at, now())
  WHERE month = of_month AND summed_at IS NOT NULL
    AND (events, cost_nanos, digest) = (of_events, of_cost_nanos, of_digest);
  RETURN FOUND;
END $$;

-- Drops the oldest month that is left, once it has been confirmed for a day: a run of reconcile that began before that
-- has ended. What the rollups lack is summed first, and its stragglers move to the default partition. Returns the
-- month, or null if none is due or another process is at it.
CREATE OR REPLACE FUNCTION drop_month() RETURNS date LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = metering, pg_temp SET lock_timeout = '2s' AS $$
DECLARE
  retired retired_month;
  name text;
  stragglers text[];
BEGIN
  IF NOT pg_try_advisory_xact_lock(hashtextextended('tollgate-metering-partitions', 0)) THEN
    RETURN NULL;
  END IF;
  SELECT * INTO retired FROM retired_month WHERE dropped_at IS NULL ORDER BY month LIMIT 1 FOR UPDATE;
  IF NOT FOUND OR retired.confirmed_at IS NULL OR retired.confirmed_at > now() - interval '1 day' THEN
    RETURN NULL;
  END IF;
  name := 'usage_event_' || to_char(retired.month, 'YYYY_MM');
  -- Those that were recorded later, which only their events show. One that came since the month was summed stays open.
  UPDATE rejected_event q SET dismissed_at = now()
    WHERE dismissed_at IS NULL AND event_id >= retired.from_id AND event_id < retired.until_id
      AND EXISTS (SELECT FROM usage_event e WHERE e.id = q.event_id);
  -- The events of this month and of older ones that go now.
  EXECUTE format(
    'WITH older AS (
       DELETE FROM usage_event_default WHERE id < $1 AND ended_at < $2
       RETURNING tenant_id, ended_at, model, key_id, outcome)
     INSERT INTO dropped_unfinished AS stored
       SELECT tenant_id, date_trunc(''hour'', ended_at, ''UTC''), model, key_id,
         count(*) FILTER (WHERE outcome <> ''client_closed''), count(*) FILTER (WHERE outcome = ''client_closed'')
       FROM (
         SELECT tenant_id, ended_at, model, key_id, outcome FROM older
         UNION ALL
         SELECT tenant_id, ended_at, model, key_id, outcome FROM %I WHERE ended_at < $2
       ) gone
       WHERE outcome <> ''complete'' GROUP BY 1, 2, 3, 4
     ON CONFLICT (tenant_id, hour, model, key_id) DO UPDATE SET failed = stored.failed + excluded.failed,
       client_closed = stored.client_closed + excluded.client_closed', name)
    USING retired.until_id, retired.exact_from;
  UPDATE retired_month SET dropped_at = now() WHERE month = retired.month;
  -- Found before the exclusive lock, tenant by tenant: otherwise the whole month would have to be read again.
  EXECUTE format(
    'SELECT array_agg(e.id) FROM tenant_sum t, LATERAL (
       SELECT id FROM %I WHERE tenant_id = t.tenant_id AND ended_at >= $1 OFFSET 0) e', name)
    INTO stragglers USING retired.exact_from;
  IF stragglers IS NOT NULL THEN
    EXECUTE format('ALTER TABLE usage_event DETACH PARTITION %I', name);
    ALTER TABLE usage_event_default DROP CONSTRAINT closed;
    EXECUTE format('INSERT INTO usage_event_default SELECT * FROM %I WHERE id = ANY($1)', name) USING stragglers;
    EXECUTE format(
      'ALTER TABLE usage_event_default ADD CONSTRAINT closed CHECK (id >= %L) NOT VALID',
      (SELECT max(until_id) FROM retired_month));
  END IF;
  EXECUTE format('DROP TABLE %I', name);
  RETURN retired.month;
END $$;

-- Deletes at most so many names that callers gave to requests of dropped months, except those of events that are still
-- there. Returns how many.
CREATE OR REPLACE FUNCTION forget_callers(most int) RETURNS int LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = metering, pg_temp AS $$
DECLARE
  forgotten int;
BEGIN
  DELETE FROM caller_request WHERE ctid = ANY(ARRAY(
    SELECT ctid FROM caller_request
    WHERE id < (SELECT max(until_id) FROM retired_month WHERE dropped_at IS NOT NULL)
      AND NOT EXISTS (SELECT FROM usage_event_default e WHERE e.id = caller_request.id)
    LIMIT most));
  GET DIAGNOSTICS forgotten = ROW_COUNT;
  RETURN forgotten;
END $$;
