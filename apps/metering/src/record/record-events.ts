import type { UsageEvent } from '@tollgate/contracts';
import type { CopyIn } from '@tollgate/postgres';
import type { Rating } from '../price/rate';
import { backendOf } from './backend-hours';
import { storedLife } from './request-life';

/** A valid event and its charge. */
export interface RatedEvent extends Rating {
  event: UsageEvent;
}

const COPY_EVENTS = `
  COPY usage_event (
    id, tenant_id, key_id, model, kind, stream, started_at, ended_at,
    outcome, estimated, prompt_tokens, cached_tokens, completion_tokens,
    cost_nanos, overrun_nanos, price_version,
    input_femtos, cached_input_femtos, output_femtos, request_nanos, backend, reasoning_tokens, life
  ) FROM STDIN`;

/**
 * Writes events of different ids in ascending order, so that two consumers with common events wait for each other
 * instead of deadlocking. Rejects with SQLSTATE 23505 if one is recorded already.
 *
 * COPY instead of INSERT … ON CONFLICT DO NOTHING, which writes each row speculatively and by itself, in more than
 * twice the time for the same rows (see README).
 */
export function recordEvents(copyIn: CopyIn, rated: readonly RatedEvent[]): Promise<void> {
  let rows = '';
  for (const { event, chargeNanos, overrunNanos } of rated) {
    const { price } = event;
    const backend = backendOf(event);
    const life = event.life === undefined ? null : storedLife(event);
    rows +=
      `${event.id}\t${event.tenantId}\t${event.keyId}\t${escape(event.model)}\t` +
      `${event.kind}\t${event.stream}\t${event.startedAt}\t${event.endedAt}\t` +
      `${event.outcome}\t${event.estimated}\t${event.promptTokens}\t${event.cachedTokens}\t` +
      `${event.completionTokens}\t` +
      `${chargeNanos}\t${overrunNanos}\t${escape(price.version)}\t` +
      `${price.inputFemtos}\t${price.cachedInputFemtos}\t${price.outputFemtos}\t${price.requestNanos}\t` +
      `${backend === null ? '\\N' : escape(backend)}\t${event.reasoningTokens ?? 0}\t` +
      `${life === null ? '\\N' : escape(life)}\n`;
  }
  return copyIn(COPY_EVENTS, rows);
}

/**
 * Escapes a name. It has no control characters (consume/read-usage-event.ts), so only backslashes are special to COPY.
 */
function escape(name: string): string {
  return name.includes('\\') ? name.replaceAll('\\', '\\\\') : name;
}
