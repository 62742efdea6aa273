import { Injectable } from '@nestjs/common';
import {
  idBound,
  isId,
  isInstant,
  MAX_EXPORT_ROWS,
  RequestError,
  toPage,
  type ExportedUsage,
  type ReplyOf,
  type RequestOf,
} from '@tollgate/contracts';
import { query } from '@tollgate/postgres';
import { MeteringDataSource } from '../database';
import { inIndexOrder, type Transactions } from './by-index';
import { checkKept } from '../retain/kept-from';
import { HOUR_MS } from '../hours';
import { parseCount, parseFilter, parseTime } from './parameters';
import { UsageReads } from './usage-reads';

/** The deadline of the gateway's request. A filter can make the search for a page slow. */
const PAGE_DEADLINE_MS = 55_000;
/** All exports together read like one tenant: two pages at the same time. */
const READER = 'exports';
/** Ids are in the order of the start. A request that ran longer is only in the export of its tenant. */
const LONGEST_REQUEST_MS = 48 * HOUR_MS;
/** Ids are ahead of a clock that was set back, by less than this (`MAX_AHEAD_MS` of the contracts). */
const CLOCK_SLACK_MS = HOUR_MS;
const FIRST_HOUR = ['', '-infinity', '', ''];
const PLACE = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)~(.+)$/;

interface Range {
  from: string;
  to: string;
  tenantId: string | null;
  model: string | null;
  keyId: string | null;
  limit: number;
}

interface Row extends Omit<ExportedUsage, 'from' | 'to'> {
  started: Date;
  ended: Date;
}

/**
 * Answers `metering.usage.export`: pages by the keys of the store, so that each costs as much as its rows. All tenants'
 * requests are read by their ids, those of one tenant by the index of tenant and end, and hours by the key of the
 * rollups. Pages wait for each other, so that any number of exports leaves connections for the recording of usage.
 */
@Injectable()
export class UsageExport {
  private readonly reads: Transactions;

  constructor(private readonly dataSource: MeteringDataSource) {
    this.reads = new UsageReads(dataSource, PAGE_DEADLINE_MS).of(READER);
  }

  /** RequestError invalid_parameter; UnavailableError. */
  async page(asked: RequestOf<'metering.usage.export'>): Promise<ReplyOf<'metering.usage.export'>> {
    const fromMs = parseTime('from', asked.from);
    const toMs = parseTime('to', asked.to);
    if (fromMs > toMs) throw new RequestError('invalid_parameter', 'from must not be after to.');
    if (asked.step !== 'request' && asked.step !== 'hour')
      throw new RequestError('invalid_parameter', 'step must be request or hour.');
    if (asked.step === 'hour' && (fromMs % HOUR_MS !== 0 || toMs % HOUR_MS !== 0))
      throw new RequestError('invalid_parameter', 'from and to must be full hours if step is hour.');
    const range: Range = {
      from: new Date(fromMs).toISOString(),
      to: new Date(toMs).toISOString(),
      tenantId: parseFilter('tenantId', asked.tenantId),
      model: parseFilter('model', asked.model),
      keyId: parseFilter('keyId', asked.keyId),
      limit: parseCount('limit', asked.limit ?? MAX_EXPORT_ROWS, MAX_EXPORT_ROWS),
    };
    const { after } = asked;
    const rows =
      asked.step === 'hour'
        ? await this.hours(range, after)
        : range.tenantId === null
          ? await this.requests(range, fromMs, toMs, after)
          : await this.requestsOf(range, after);
    // Checked after the page, so that a month that was dropped meanwhile is noticed.
    if (asked.step === 'request') await checkKept(this.dataSource, [fromMs], 'Export it by hour or day.');
    return toPage(rows.map(exported), range.limit, ({ id, tenantId, from, to, model, keyId }) => {
      if (asked.step === 'hour') return JSON.stringify([tenantId, from, model, keyId]);
      return range.tenantId === null ? id! : `${to}~${id}`;
    });
  }

  /** The requests of all tenants, ascending by id. */
  private requests(range: Range, fromMs: number, toMs: number, after: string | undefined): Promise<Row[]> {
    if (after !== undefined && !isId('req', after)) throw wrongCursor();
    const first = idBound('req', fromMs - LONGEST_REQUEST_MS);
    return this.read(range, `id > $1 AND id < $2 AND ended_at >= $3 AND ended_at < $4`, 'id', [
      ...[after ?? first, idBound('req', toMs + CLOCK_SLACK_MS)],
      ...[range.from, range.to],
    ]);
  }

  /** The requests of one tenant, ascending by end. */
  private requestsOf(range: Range, after: string | undefined): Promise<Row[]> {
    const [, time, id] = after === undefined ? ['', range.from, ''] : (PLACE.exec(after) ?? []);
    if (!isInstant(time) || (id !== '' && !isId('req', id))) throw wrongCursor();
    const where = `tenant_id = $1 AND ended_at >= $2 AND ended_at < $3 AND (ended_at, id) > ($2, $4)`;
    return this.read(range, where, 'ended_at, id', [
      range.tenantId,
      time < range.from ? range.from : time,
      range.to,
      id,
    ]);
  }

  private read(range: Range, where: string, order: string, values: unknown[]): Promise<Row[]> {
    const filters = filtersOf(range, values);
    return inIndexOrder(this.reads, (tx) =>
      query<Row>(
        tx,
        `SELECT id, started_at AS started, ended_at AS ended, tenant_id AS "tenantId", key_id AS "keyId", model, kind,
           outcome, backend, 1 AS requests, (outcome IN ('upstream_error', 'credit_ended', 'expired'))::int AS failed,
           (outcome = 'client_closed')::int AS "clientClosed", estimated::int AS estimated,
           prompt_tokens AS "promptTokens", cached_tokens AS "cachedTokens", completion_tokens AS "completionTokens",
           reasoning_tokens AS "reasoningTokens", cost_nanos::text AS "costNanos"
         FROM usage_event WHERE ${[where, ...filters].join(' AND ')}
         ORDER BY ${order} LIMIT $${values.push(range.limit + 1)}`,
        values,
      ),
    );
  }

  /** From the rollups, ascending by their key. Requests that did not end normally have a small index of their own. */
  private hours(range: Range, after: string | undefined): Promise<Row[]> {
    const values: unknown[] = [...(after === undefined ? FIRST_HOUR : hourCursor(after)), range.from, range.to];
    const filters = filtersOf(range, values);
    if (range.tenantId !== null) filters.push(`tenant_id = $${values.push(range.tenantId)}`);
    return inIndexOrder(this.reads, (tx) =>
      query<Row>(
        tx,
        `SELECT NULL AS id, hour AS started, hour + interval '1 hour' AS ended, h.tenant_id AS "tenantId",
           h.key_id AS "keyId", h.model, NULL AS kind, NULL AS outcome, NULL AS backend, h.requests::int AS requests,
           u.failed + d.failed AS failed, u."clientClosed" + d."clientClosed" AS "clientClosed",
           h.estimated::int AS estimated, h.prompt_tokens::float8 AS "promptTokens",
           h.cached_tokens::float8 AS "cachedTokens", h.completion_tokens::float8 AS "completionTokens",
           h.reasoning_tokens::float8 AS "reasoningTokens", h.cost_nanos::text AS "costNanos"
         FROM (SELECT * FROM usage_hour
               WHERE (tenant_id, hour, model, key_id) > ($1, $2::timestamptz, $3, $4) AND tenant_id >= $1
                 AND ${['hour >= $5', 'hour < $6', ...filters].join(' AND ')}
               ORDER BY tenant_id, hour, model, key_id LIMIT $${values.push(range.limit + 1)}) AS h
         CROSS JOIN LATERAL (SELECT count(*) FILTER (WHERE outcome <> 'client_closed')::int AS failed,
                    count(*) FILTER (WHERE outcome = 'client_closed')::int AS "clientClosed"
                  FROM usage_event e
                  WHERE e.tenant_id = h.tenant_id AND e.ended_at >= h.hour AND e.ended_at < h.hour + interval '1 hour'
                    AND e.outcome <> 'complete' AND e.model = h.model AND e.key_id = h.key_id) AS u
         CROSS JOIN LATERAL (SELECT coalesce(sum(failed), 0)::int AS failed,
                    coalesce(sum(client_closed), 0)::int AS "clientClosed"
                  FROM dropped_unfinished o
                  WHERE (o.tenant_id, o.hour, o.model, o.key_id) = (h.tenant_id, h.hour, h.model, h.key_id)) AS d
         ORDER BY h.tenant_id, h.hour, h.model, h.key_id`,
        values,
      ),
    );
  }
}

/** The conditions of model and key. Adds their values. */
function filtersOf({ model, keyId }: Range, values: unknown[]): string[] {
  const named = (column: string, value: string | null) =>
    value === null ? [] : [`${column} = $${values.push(value)}`];
  return [...named('model', model), ...named('key_id', keyId)];
}

function hourCursor(after: string): string[] {
  let place: unknown;
  try {
    place = JSON.parse(after);
  } catch {
    throw wrongCursor();
  }
  if (
    !Array.isArray(place) ||
    place.length !== 4 ||
    !place.every((part) => typeof part === 'string' && !part.includes('\0'))
  )
    throw wrongCursor();
  if (!isInstant(place[1])) throw wrongCursor();
  return place as string[];
}

const wrongCursor = () =>
  new RequestError('invalid_parameter', 'after must be the nextCursor of an earlier page of this export.');

function exported({ started, ended, ...row }: Row): ExportedUsage {
  return { ...row, from: started.toISOString(), to: ended.toISOString() };
}
