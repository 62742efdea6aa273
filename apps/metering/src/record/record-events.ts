import type { UsageEvent } from '@tollgate/contracts';
import type { EntityManager } from 'typeorm';
import type { Rating } from '../price/rate';
import { plainArray, textArray } from './array-literal';

/** A valid event and what it is charged. */
export interface RatedEvent extends Rating {
  event: UsageEvent;
}

const INSERT_EVENTS = `
  INSERT INTO usage_event (id, tenant_id, key_id, model, kind, stream, started_at, ended_at, outcome, estimated,
    prompt_tokens, cached_tokens, completion_tokens, cost_nanos, overrun_nanos, rated_nanos,
    price_version, input_femtos, cached_input_femtos, output_femtos, request_nanos)
  SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::inference_kind[], $6::bool[], $7::timestamptz[], $8::timestamptz[], $9::outcome[], $10::bool[],
    $11::int[], $12::int[], $13::int[], $14::bigint[], $15::bigint[], $16::bigint[],
    $17::text[], $18::bigint[], $19::bigint[], $20::bigint[], $21::bigint[])
  ON CONFLICT DO NOTHING
  RETURNING id`;

/**
 * Writes those events that are not recorded yet, and returns their ids. The events must be of different ids, ascending: two consumers that hold some of the same
 * then wait for each other in the same order, and not in a circle.
 */
export async function insertNewEvents(tx: EntityManager, rated: readonly RatedEvent[]): Promise<Set<string>> {
  const plain = (value: (item: RatedEvent) => string | number | bigint | boolean | null) => plainArray(rated.map(value));
  const text = (value: (item: RatedEvent) => string) => textArray(rated.map(value));
  const rows: { id: string }[] = await tx.query(INSERT_EVENTS, [
    plain(({ event }) => event.id),
    plain(({ event }) => event.tenantId),
    plain(({ event }) => event.keyId),
    text(({ event }) => event.model),
    plain(({ event }) => event.kind),
    plain(({ event }) => event.stream),
    plain(({ event }) => event.startedAt),
    plain(({ event }) => event.endedAt),
    plain(({ event }) => event.outcome),
    plain(({ event }) => event.estimated),
    plain(({ event }) => event.promptTokens),
    plain(({ event }) => event.cachedTokens),
    plain(({ event }) => event.completionTokens),
    plain(({ chargeNanos }) => chargeNanos),
    plain(({ overrunNanos }) => overrunNanos),
    plain(({ disagreementNanos }) => disagreementNanos),
    text(({ event }) => event.price.version),
    plain(({ event }) => event.price.inputFemtos),
    plain(({ event }) => event.price.cachedInputFemtos),
    plain(({ event }) => event.price.outputFemtos),
    plain(({ event }) => event.price.requestNanos),
  ]);
  return new Set(rows.map((row) => row.id));
}
