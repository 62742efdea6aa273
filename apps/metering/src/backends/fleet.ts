import {
  isId,
  MAX_BACKEND_NAME_CHARS,
  MAX_REPORTED_BACKENDS,
  RequestError,
  type BackendState,
  type MeteringFleet,
  type PriceVersion,
  type ReplyOf,
  type RequestOf,
} from '@tollgate/contracts';
import { query, transaction } from '@tollgate/postgres';
import type { DataSource } from 'typeorm';
import { openRejected } from '../record/rejected';

/** Older reports are of gateways that have ended. */
const REPORT_KEPT_S = 15;
const USAGE_HOURS = 24;
const MAX_PRICES = 1_000;

/** Answers `metering.backends.report`. RequestError invalid_parameter. */
export async function recordReport(
  dataSource: DataSource,
  { source, backends }: RequestOf<'metering.backends.report'>,
): Promise<ReplyOf<'metering.backends.report'>> {
  const isReport = isId('msg', source) && Array.isArray(backends) && backends.length <= MAX_REPORTED_BACKENDS;
  if (!isReport || !backends.every(isBackend))
    throw new RequestError(
      'invalid_parameter',
      `source must be a message id, and backends a list of at most ${MAX_REPORTED_BACKENDS} states of backends.`,
    );
  await transaction(dataSource, async (tx) => {
    await query(
      tx,
      `INSERT INTO backend_report (source, backend, healthy, open_breakers, in_flight, reported_at)
       SELECT DISTINCT ON (backend) $1, backend, healthy, open_breakers, in_flight, now()
       FROM unnest($2::text[], $3::boolean[], $4::int[], $5::int[]) AS r (backend, healthy, open_breakers, in_flight)
       ORDER BY backend
       ON CONFLICT (source, backend) DO UPDATE SET healthy = excluded.healthy,
         open_breakers = excluded.open_breakers, in_flight = excluded.in_flight, reported_at = excluded.reported_at`,
      [
        source,
        backends.map(({ backend }) => backend),
        backends.map(({ healthy }) => healthy),
        backends.map(({ openBreakers }) => openBreakers),
        backends.map(({ inFlight }) => inFlight),
      ],
    );
    // Rows that another report deletes at the same time are left to it.
    await query(
      tx,
      `DELETE FROM backend_report WHERE (source, backend) IN (
         SELECT source, backend FROM backend_report WHERE reported_at < now() - make_interval(secs => $1)
         FOR UPDATE SKIP LOCKED)`,
      [REPORT_KEPT_S],
    );
  });
  return { recorded: true };
}

/** Answers `metering.fleet`. */
export async function meteringFleet(dataSource: DataSource): Promise<MeteringFleet> {
  const [[usage], [settled], [waiting], backends, openRefusedEvents] = await Promise.all([
    query<{ requests: string; prompt: string; completion: string }>(
      dataSource,
      `SELECT coalesce(sum(requests), 0) AS requests, coalesce(sum(prompt_tokens), 0) AS prompt,
         coalesce(sum(completion_tokens), 0) AS completion
       FROM backend_hour WHERE hour > now() - make_interval(hours => $1)`,
      [USAGE_HOURS],
    ),
    query<{ nanos: string }>(dataSource, 'SELECT coalesce(sum(cost_nanos), 0) AS nanos FROM tenant_sum'),
    query<{ seconds: number }>(
      dataSource,
      'SELECT extract(epoch FROM now() - created_at)::float8 AS seconds FROM outbox ORDER BY id LIMIT 1',
    ),
    backendStates(dataSource),
    openRejected(dataSource),
  ]);
  return {
    requests: Number(usage!.requests),
    promptTokens: Number(usage!.prompt),
    completionTokens: Number(usage!.completion),
    settledNanos: settled!.nanos,
    chargesAgeSeconds: Math.max(0, waiting?.seconds ?? 0),
    openRefusedEvents,
    backends,
  };
}

function backendStates(dataSource: DataSource): Promise<BackendState[]> {
  return query<BackendState>(
    dataSource,
    `SELECT backend, count(*)::int AS gateways, count(*) FILTER (WHERE NOT healthy)::int AS unhealthy,
       count(*) FILTER (WHERE open_breakers > 0)::int AS broken, sum(in_flight)::int AS "inFlight"
     FROM backend_report WHERE reported_at >= now() - make_interval(secs => $1) GROUP BY backend ORDER BY backend`,
    [REPORT_KEPT_S],
  );
}

/** Answers `metering.prices.list`: newest first. */
export async function priceVersions(dataSource: DataSource): Promise<{ data: PriceVersion[] }> {
  const rows = await query<Omit<PriceVersion, 'firstSeenAt'> & { firstSeenAt: Date }>(
    dataSource,
    `SELECT model, version, input_femtos AS "inputFemtos", cached_input_femtos AS "cachedInputFemtos",
       output_femtos AS "outputFemtos", request_nanos AS "requestNanos", first_seen_at AS "firstSeenAt"
     FROM price_version ORDER BY first_seen_at DESC, model LIMIT $1`,
    [MAX_PRICES],
  );
  return { data: rows.map((row) => ({ ...row, firstSeenAt: row.firstSeenAt.toISOString() })) };
}

function isBackend(value: unknown): boolean {
  const { backend, healthy, openBreakers, inFlight } = (value ?? {}) as Record<string, unknown>;
  const isName = typeof backend === 'string' && backend.length <= MAX_BACKEND_NAME_CHARS && !backend.includes('\0');
  const isCount = (n: unknown) => Number.isInteger(n) && Number(n) >= 0 && Number(n) <= 1_000_000;
  return isName && typeof healthy === 'boolean' && isCount(openBreakers) && isCount(inFlight);
}
