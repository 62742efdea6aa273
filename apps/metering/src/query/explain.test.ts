import {
  idBound,
  MAX_EXPLAINED,
  MAX_REFUSED_IN_REPORT,
  MAX_REFUSED_PER_MINUTE,
  newId,
  RequestError,
  type RefusedRequest,
} from '@tollgate/contracts';
import { UsageConsumer } from '../consume/usage-consumer';
import { useMeteringDatabase } from '../metering-database.fixture';
import { recordRefusals } from '../refusals/record';
import { newestRefused } from '../refusals/refused-requests';
import { ANY_PRICE, usageEvent } from '../sample-events.fixture';
import { explainRequests } from './explain';

const database = useMeteringDatabase();
const DAY_MS = 86_400_000;
const [SOURCE, KEY] = [newId('msg'), newId('key')];
let tenantId: string;
beforeEach(async () => {
  await database.query('DELETE FROM metering.refused_request');
  tenantId = newId('ten');
});

/** An id of that time. `newId` never goes back. */
const idAt = (ms: number) => idBound('req', ms).slice(0, -12) + newId('req').slice(-12);
const refusedAt = (ms: number, changes: Partial<RefusedRequest> = {}): RefusedRequest => {
  return { id: idAt(ms), tenantId, keyId: KEY, at: new Date(ms).toISOString(), code: 'credit_held', ...changes };
};
const report = (refused: RefusedRequest[]) =>
  recordRefusals(database.dataSource, { source: SOURCE, counts: [], refused });
const explain = (name: string, of?: string) =>
  explainRequests(database.dataSource, { name, ...(of !== undefined && { tenantId: of }) });
const count = async () => Number((await database.query('SELECT count(*) FROM metering.refused_request'))[0]!['count']);

describe('a served request', () => {
  const life = { key: [1, 2, 3], tenant: [4, 5, 6], heldNanos: '7' } as const;

  it('is found by our id and by that of its caller, with its life, for its tenant alone', async () => {
    const event = usageEvent({ tenantId, callerRequestId: 'order-17', backend: 'http://gpu\\1/v1', life });
    await new UsageConsumer(database.dataSource, ANY_PRICE).consume([event]);
    for (const name of [event.id, 'order-17']) {
      const { served, refused } = await explain(name, tenantId);
      expect([served.length, refused]).toEqual([1, []]);
      const { backend } = event;
      expect(served[0]).toMatchObject({ id: event.id, callerRequestId: 'order-17', backend, life });
      expect(Date.parse(served[0]!.recordedAt)).toBeGreaterThan(Date.now() - DAY_MS);
      expect((await explain(name, newId('ten'))).served).toEqual([]);
    }
  });

  it('of a gateway that could not tell has no life, and an event with a malformed life is charged', async () => {
    const events = [usageEvent({ tenantId }), usageEvent({ tenantId, life: { key: 'words' } as never })];
    const { recorded } = await new UsageConsumer(database.dataSource, ANY_PRICE).consume(events);
    expect(recorded).toBe(2);
    for (const { id } of events)
      expect((await explain(id)).served[0]).toMatchObject({ life: null, backend: null, callerRequestId: null });
  });
});

describe('a refused request', () => {
  it('is found by both ids and by its key, with what refused it, for its tenant alone', async () => {
    const now = Date.now();
    const by = { what: 'tokens', scope: 'key', limit: 10, remaining: 0, needs: 12, until: '2026-11-24T10:00:00.000Z' };
    const failed = [{ backend: 'http://gpu/v1', why: 'timeout' }];
    const whole = {
      callerRequestId: 'order-18',
      model: 'sim-small',
      param: 'messages[0].role',
      by,
      heldNanos: '5',
      failed,
    } as const;
    const one = refusedAt(now, whole as Partial<RefusedRequest>);
    const other = refusedAt(now + 1, { keyId: newId('key') });
    await report([one, other]);
    await report([one]);
    expect(await count()).toBe(2);
    for (const name of [one.id, 'order-18']) expect(await explain(name)).toEqual({ served: [], refused: [one] });
    expect((await explain('order-18', newId('ten'))).refused).toEqual([]);
    expect(await newestRefused(database.dataSource, { keyId: KEY })).toEqual({ refused: [one] });
  });

  it('keeps known fields only, and no words', async () => {
    const one = refusedAt(Date.now());
    const strange = {
      by: { what: 'words', limit: 1 },
      model: 'a\0b',
      param: 'words of a prompt',
      failed: 'words',
      heldNanos: '-1',
      prompt: 'Hello',
    };
    await report([{ ...one, ...strange } as never]);
    expect((await explain(one.id)).refused).toEqual([one]);
  });

  it('is kept for 7 days', async () => {
    const now = Date.now();
    const [old, ahead] = [refusedAt(now - 7.01 * DAY_MS), refusedAt(now + DAY_MS)];
    await report([old, ahead, refusedAt(now - 6.99 * DAY_MS)]);
    expect(await count()).toBe(1);
    await database.query(`UPDATE metering.refused_request SET id = $1`, [old.id]);
    expect((await explain(old.id)).refused).toEqual([]);
    await report([]);
    expect(await count()).toBe(0);
  });

  it('is one of a bounded number in each minute, of its tenant and of all, also over several reports', async () => {
    // The middle of a minute.
    const ms = Math.floor(Date.now() / 60_000 - 5) * 60_000 + 30_000;
    const many = () => Array.from({ length: MAX_REFUSED_PER_MINUTE.tenant - 10 }, () => refusedAt(ms));
    await report(many());
    await report(many());
    expect(await count()).toBe(MAX_REFUSED_PER_MINUTE.tenant);
    for (let tenant = 0; tenant < 10; tenant++) {
      tenantId = newId('ten');
      await report(many());
    }
    expect(await count()).toBe(MAX_REFUSED_PER_MINUTE.all);
    await report([refusedAt(ms + 60_000)]);
    expect(await count()).toBe(MAX_REFUSED_PER_MINUTE.all + 1);
    expect((await newestRefused(database.dataSource, { keyId: KEY })).refused).toHaveLength(MAX_EXPLAINED);
  });
});

it.each<[string, () => Promise<unknown>]>([
  ['a name that is text', () => explain('a b')],
  ['no tenant', () => explain('order-17', 'Acme')],
  ['no key', () => newestRefused(database.dataSource, { keyId: 'x' })],
  ['too many refused requests', () => report(Array(MAX_REFUSED_IN_REPORT + 1).fill(refusedAt(Date.now())))],
  ['a code that is text', () => report([refusedAt(Date.now(), { code: 'You lose' })])],
  ['a time on no day', () => report([refusedAt(Date.now(), { at: '2026-02-30T10:00:00.000Z' })])],
  ['a code in a list', () => report([refusedAt(Date.now(), { code: ['credit_held'] as never })])],
  ['no time', () => report([refusedAt(Date.now(), { at: 'now' })])],
  ['a request without an id', () => report([refusedAt(Date.now(), { id: 'order-17' })])],
  ['no list', () => report('x' as never)],
])('%s is refused with invalid_parameter', async (_, asked) => {
  const refused = asked();
  await expect(refused).rejects.toThrow(RequestError);
  await expect(refused).rejects.toMatchObject({ code: 'invalid_parameter' });
});
