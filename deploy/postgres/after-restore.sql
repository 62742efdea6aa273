-- Repairs what a restored database lacks because Kafka is lost. Run it with psql as a superuser, after PostgreSQL was
-- restored to a moment and before the services start on an empty Kafka (docs/operating/backups.md). Safe to repeat.
--
-- A message that was published before the moment and handled after it is in no outbox any more. So it is put there
-- again, from the table that it was made from. Consumers ignore those that they know.
\set ON_ERROR_STOP on
BEGIN;

-- The charges that billing had not gathered. Billing counts a charge once, by its id. They lack the default budgets of
-- that time, as all charges do that are sent again.
WITH missing AS (
  SELECT jsonb_strip_nulls(jsonb_build_object(
    'id', id, 'tenantId', tenant_id, 'keyId', key_id, 'costNanos', cost_nanos::text,
    'overrunNanos', nullif(overrun_nanos, 0)::text,
    'endedAt', to_char(ended_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))) AS data
  FROM metering.usage_event event
  WHERE NOT EXISTS (SELECT FROM billing.charge WHERE charge.id = event.id)
    AND NOT EXISTS (SELECT FROM metering.outbox WHERE topic = 'charges' AND data ->> 'id' = event.id)
  ORDER BY id
), put AS (
  INSERT INTO metering.outbox (topic, data) SELECT 'charges', data FROM missing RETURNING 1
)
SELECT count(*) AS "charges published again" FROM put;

-- The statuses of tenants that billing did not know. Billing takes in a status only if its version is newer. For
-- admission, a closed tenant is a suspended one.
WITH missing AS (
  SELECT jsonb_build_object(
    'tenantId', id, 'version', status_version,
    'status', CASE status WHEN 'active' THEN 'active' ELSE 'suspended' END) AS data
  FROM auth.tenant
  WHERE status_version >
    coalesce((SELECT b.status_version FROM billing.tenant_books b WHERE b.tenant_id = tenant.id), 0)
), put AS (
  INSERT INTO auth.outbox (topic, data) SELECT 'tenant-news', data FROM missing RETURNING 1
)
SELECT count(*) AS "tenant statuses published again" FROM put;

COMMIT;
