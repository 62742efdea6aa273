import { MAX_REFUSAL_COUNTS, newId, RequestError, type RefusalCount } from '@tollgate/contracts';
import { useMeteringDatabase } from '../metering-database.fixture';
import { recordRefusals } from './record';
import { refusalSeries } from './series';

const database = useMeteringDatabase();
const HOUR_MS = 3_600_000;
const thisHourMs = Math.floor(Date.now() / HOUR_MS) * HOUR_MS;
const hour = (ago: number) => new Date(thisHourMs - ago * HOUR_MS).toISOString();
const [KEY, OTHER_KEY, SOURCE] = [newId('key'), newId('key'), newId('msg')];
let tenantId: string;
beforeEach(() => (tenantId = newId('ten')));

const count = (ago: number, code: string, requests: number, keyId = KEY): RefusalCount => {
  return { tenantId, keyId, hour: hour(ago), code, requests };
};
const report = (counts: RefusalCount[], source = SOURCE) => recordRefusals(database.dataSource, { source, counts });
const all = async (changes: { keyId?: string } = {}) => {
  const range = { from: hour(30 * 24), to: hour(-1) };
  const { points } = await refusalSeries(database.dataSource, { tenantId, ...range, step: 'all', ...changes });
  return Object.fromEntries(points.map(({ code, requests }) => [code, requests]));
};

describe('counts of refused requests', () => {
  it('add up over keys and gateways, and a repeated or late report changes nothing', async () => {
    const first = [count(0, 'credit_exhausted', 2), count(0, 'requests_limit_exceeded', 1)];
    const second = [count(0, 'credit_exhausted', 5)];
    for (const counts of [first, second, first, second]) await report(counts);
    await report([count(0, 'credit_exhausted', 1)], newId('msg'));
    await report([count(1, 'credit_exhausted', 10, OTHER_KEY)]);
    expect(await all()).toEqual({ credit_exhausted: 16, requests_limit_exceeded: 1 });
    expect(await all({ keyId: KEY })).toEqual({ credit_exhausted: 6, requests_limit_exceeded: 1 });
  });

  it('are given by hour, in order', async () => {
    await report([count(2, 'credit_held', 1), count(2, 'budget_reached', 2), count(0, 'credit_held', 3)]);
    const asked = { tenantId, from: hour(2), to: hour(-1), step: 'hour' as const };
    expect(await refusalSeries(database.dataSource, asked)).toEqual({
      from: hour(2),
      to: hour(-1),
      points: [
        { at: hour(2), code: 'budget_reached', requests: 2 },
        { at: hour(2), code: 'credit_held', requests: 1 },
        { at: hour(0), code: 'credit_held', requests: 3 },
      ],
    });
  });

  it('are those of this tenant alone', async () => {
    await report([count(0, 'credit_held', 1)]);
    tenantId = newId('ten');
    expect(await all()).toEqual({});
  });

  it('are not taken for hours that are no longer kept, and are deleted then', async () => {
    await database.query(
      `INSERT INTO metering.refusal_hour VALUES ($1, now() - interval '91 days', 'key', 'api_error', 's', 1)`,
      [tenantId],
    );
    await report([count(91 * 24, 'api_error', 1)]);
    expect(await database.query('SELECT * FROM metering.refusal_hour WHERE tenant_id = $1', [tenantId])).toEqual([]);
  });

  it.each<[string, () => [RefusalCount[], string?]]>([
    ['no source', () => [[], 'gateway']],
    ['too many counts', () => [Array(MAX_REFUSAL_COUNTS + 1).fill(count(0, 'a', 1))]],
    ['a time within an hour', () => [[{ ...count(0, 'a', 1), hour: '2026-11-21T10:30:00.000Z' }]]],
    ['an hour of a day that does not exist', () => [[{ ...count(0, 'a', 1), hour: '2026-02-30T10:00:00.000Z' }]]],
    ['an hour of the year 0', () => [[{ ...count(0, 'a', 1), hour: '0000-01-01T10:00:00.000Z' }]]],
    ['a code in a list', () => [[{ ...count(0, 'a', 1), code: ['a'] as never }]]],
    ['an hour to come', () => [[count(-2, 'a', 1)]]],
    ['a code that is text', () => [[count(0, 'You lose', 1)]]],
    ['nothing counted', () => [[count(0, 'a', 0)]]],
    ['no key', () => [[count(0, 'a', 1, '')]]],
    ['no count', () => [[null as unknown as RefusalCount]]],
  ])('are refused with %s', async (_, made) => {
    const refused = report(...made());
    await expect(refused).rejects.toThrow(RequestError);
    await expect(refused).rejects.toMatchObject({ code: 'invalid_parameter' });
  });
});
