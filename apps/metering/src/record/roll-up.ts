import { queryPrepared } from '@tollgate/postgres';
import type { EntityManager } from 'typeorm';
import { HOUR_CHARS } from '../hours';
import { plainArray, textArray } from './array-literal';
import type { RatedEvent } from './record-events';
import { addToDays, mayBeFolded } from './usage-days';

interface HourSum {
  tenantId: string;
  hour: string;
  model: string;
  keyId: string;
  requests: number;
  promptTokens: number;
  cachedTokens: number;
  completionTokens: number;
  estimated: number;
  costNanos: bigint;
  reasoningTokens: number;
  failed: number;
  clientClosed: number;
}

/**
 * Sums over events, sorted. Rows are locked in this order, late days before hours before tenants, so two consumers
 * never deadlock.
 */
export interface Sums {
  hours: HourSum[];
  tenants: TenantSum[];
}

interface TenantSum {
  tenantId: string;
  events: number;
  costNanos: bigint;
}

export function sumUp(events: readonly RatedEvent[]): Sums {
  const hours = sumByHour(events);
  return { hours, tenants: sumByTenant(hours) };
}

/** Adds the sums of new events to the stored ones. */
export async function addToSums(tx: EntityManager, { hours, tenants }: Sums): Promise<void> {
  const late = hours.filter(({ hour }) => mayBeFolded(hour));
  if (late.length > 0) await addToDays(tx, [...hourColumns(late), ...endColumns(late)]);
  await queryPrepared(
    tx,
    `INSERT INTO usage_hour AS stored (tenant_id, hour, model, key_id, requests, prompt_tokens, cached_tokens,
       completion_tokens, estimated, cost_nanos, reasoning_tokens)
     SELECT *
     FROM unnest($1::text[], $2::timestamptz[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::bigint[],
       $8::bigint[], $9::bigint[], $10::numeric[], $11::bigint[])
     ON CONFLICT (tenant_id, hour, model, key_id) DO UPDATE SET
       requests = stored.requests + excluded.requests,
       prompt_tokens = stored.prompt_tokens + excluded.prompt_tokens,
       cached_tokens = stored.cached_tokens + excluded.cached_tokens,
       completion_tokens = stored.completion_tokens + excluded.completion_tokens,
       estimated = stored.estimated + excluded.estimated,
       cost_nanos = stored.cost_nanos + excluded.cost_nanos,
       reasoning_tokens = stored.reasoning_tokens + excluded.reasoning_tokens`,
    hourColumns(hours),
  );
  await queryPrepared(
    tx,
    `INSERT INTO tenant_sum AS stored SELECT * FROM unnest($1::text[], $2::bigint[], $3::numeric[])
     ON CONFLICT (tenant_id) DO UPDATE SET events = stored.events + excluded.events,
       cost_nanos = stored.cost_nanos + excluded.cost_nanos`,
    [
      plainArray(tenants.map((sum) => sum.tenantId)),
      plainArray(tenants.map((sum) => sum.events)),
      plainArray(tenants.map((sum) => sum.costNanos)),
    ],
  );
}

/** The parameters of a statement. */
const hourColumns = (hours: readonly HourSum[]): string[] => [
  plainArray(hours.map((sum) => sum.tenantId)),
  plainArray(hours.map((sum) => sum.hour)),
  textArray(hours.map((sum) => sum.model)),
  plainArray(hours.map((sum) => sum.keyId)),
  plainArray(hours.map((sum) => sum.requests)),
  plainArray(hours.map((sum) => sum.promptTokens)),
  plainArray(hours.map((sum) => sum.cachedTokens)),
  plainArray(hours.map((sum) => sum.completionTokens)),
  plainArray(hours.map((sum) => sum.estimated)),
  plainArray(hours.map((sum) => sum.costNanos)),
  plainArray(hours.map((sum) => sum.reasoningTokens)),
];

const endColumns = (hours: readonly HourSum[]): string[] => [
  plainArray(hours.map((sum) => sum.failed)),
  plainArray(hours.map((sum) => sum.clientClosed)),
];

/** One row per tenant, hour, model and key, sorted by them. */
function sumByHour(events: readonly RatedEvent[]): HourSum[] {
  const sums = new Map<string, HourSum>();
  for (const { event, chargeNanos } of events) {
    const hour = `${event.endedAt.slice(0, HOUR_CHARS)}:00:00.000Z`;
    const { tenantId, model, keyId } = event;
    // Ids and times have no blank. The model may have one, so it is last.
    const name = `${tenantId} ${hour} ${keyId} ${model}`;
    let sum = sums.get(name);
    if (!sum) {
      sum = {
        tenantId,
        hour,
        model,
        keyId,
        requests: 0,
        promptTokens: 0,
        cachedTokens: 0,
        completionTokens: 0,
        estimated: 0,
        costNanos: 0n,
        reasoningTokens: 0,
        failed: 0,
        clientClosed: 0,
      };
      sums.set(name, sum);
    }
    sum.requests += 1;
    sum.promptTokens += event.promptTokens;
    sum.cachedTokens += event.cachedTokens;
    sum.completionTokens += event.completionTokens;
    sum.estimated += event.estimated ? 1 : 0;
    sum.costNanos += chargeNanos;
    sum.reasoningTokens += event.reasoningTokens ?? 0;
    sum.failed += event.outcome === 'complete' || event.outcome === 'client_closed' ? 0 : 1;
    sum.clientClosed += event.outcome === 'client_closed' ? 1 : 0;
  }
  return [...sums].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, sum]) => sum);
}

function sumByTenant(hours: readonly HourSum[]): TenantSum[] {
  const sums = new Map<string, TenantSum>();
  for (const { tenantId, requests, costNanos } of hours) {
    const sum = sums.get(tenantId) ?? { tenantId, events: 0, costNanos: 0n };
    sums.set(tenantId, { tenantId, events: sum.events + requests, costNanos: sum.costNanos + costNanos });
  }
  // In the order of the hours, which starts with the tenant.
  return [...sums.values()];
}
