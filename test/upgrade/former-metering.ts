import { idBound, newId } from '@tollgate/contracts';
import type { Client } from 'pg';

const COST_NANOS = 70;

/**
 * Records a request in the first hour of each month (YYYY-MM) as the former version did. The first month has a
 * partition; the others are in the default one. The request of the first one fails.
 */
export async function recordAsFormer(client: Client, tenantId: string, months: readonly string[]): Promise<void> {
  await client.query(
    `SET search_path TO metering; SELECT add_month(${months[0]!.replace('-', ', ')}); RESET search_path`,
  );
  const keyId = newId('key');
  for (const [index, month] of months.entries()) {
    const at = `${month}-01T00:00:01.000Z`;
    const id = idBound('req', Date.parse(at)).slice(0, 14) + newId('req').slice(14);
    await client.query(
      `INSERT INTO metering.usage_event (started_at, ended_at, cost_nanos, overrun_nanos, rated_nanos, input_femtos,
         cached_input_femtos, output_femtos, request_nanos, prompt_tokens, cached_tokens, completion_tokens, kind,
         outcome, stream, estimated, id, tenant_id, key_id, model, price_version)
       VALUES ($1, $1, $2, 0, NULL, 0, 0, 0, $2, 3, 1, 4, 'chat', $3, false, false, $4, $5, $6, 'm', 'v')`,
      [at, COST_NANOS, index === 0 ? 'upstream_error' : 'complete', id, tenantId, keyId],
    );
    await client.query(
      `INSERT INTO metering.usage_hour (tenant_id, hour, model, key_id, requests, prompt_tokens, cached_tokens,
         completion_tokens, estimated, cost_nanos)
       VALUES ($1, date_trunc('hour', $2::timestamptz, 'UTC'), 'm', $3, 1, 3, 1, 4, 0, $4)`,
      [tenantId, at, keyId, COST_NANOS],
    );
  }
}
