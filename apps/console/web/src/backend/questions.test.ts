import { usageQuestion, type UsageSearch } from './questions';

const TENANT = 'ten_1';
const NOW = '2026-03-10T14:25:00.000Z';

beforeAll(() => jest.useFakeTimers({ now: new Date(NOW), doNotFake: ['nextTick', 'setImmediate'] }));
afterAll(() => jest.useRealTimers());

/** The address that the page of the usage asks. */
async function askedFor(search: UsageSearch): Promise<string> {
  const fetched = jest.spyOn(globalThis, 'fetch').mockImplementation(async () => Response.json({}));
  try {
    await usageQuestion(TENANT, search).queryFn();
    return decodeURIComponent(fetched.mock.lastCall![0] as string);
  } finally {
    fetched.mockRestore();
  }
}

it.each<[UsageSearch, string]>([
  [{}, 'from=2026-02-09T00:00:00.000Z&to=2026-03-11T00:00:00.000Z&step=day&by=model'],
  [{ days: '1' }, 'from=2026-03-09T15:00:00.000Z&to=2026-03-10T15:00:00.000Z&step=hour&by=model'],
  [{ days: '7' }, 'from=2026-03-04T00:00:00.000Z&to=2026-03-11T00:00:00.000Z&step=day&by=model'],
  [
    { days: '7', step: 'hour', by: 'key' },
    'from=2026-03-03T15:00:00.000Z&to=2026-03-10T15:00:00.000Z&step=hour&by=key',
  ],
  [
    { days: '90', step: 'hour', by: 'none', model: 'sim-small', keyId: 'key_1' },
    'from=2025-12-11T00:00:00.000Z&to=2026-03-11T00:00:00.000Z&step=day&model=sim-small&keyId=key_1',
  ],
  [
    { days: '7', from: '2025-02-01T00:00:00.000Z', to: '2026-03-01T00:00:00.000Z' },
    'from=2025-02-01T00:00:00.000Z&to=2026-03-01T00:00:00.000Z&step=day&by=model',
  ],
  [
    { from: '2026-02-01T00:00:00.000Z', to: '2026-02-02T00:00:00.000Z', by: 'none' },
    'from=2026-02-01T00:00:00.000Z&to=2026-02-02T00:00:00.000Z&step=hour',
  ],
  [{ from: '2026-03-01T00:00:00.000Z' }, 'from=2026-03-01T00:00:00.000Z&to=2026-03-11T00:00:00.000Z&step=day&by=model'],
  [{ to: '2026-03-03T00:00:00.000Z' }, 'from=2026-02-01T00:00:00.000Z&to=2026-03-03T00:00:00.000Z&step=day&by=model'],
  ...['abc', '0', '-7', '1e12', '401'].map((days): [UsageSearch, string] => [
    { days },
    'from=2026-02-09T00:00:00.000Z&to=2026-03-11T00:00:00.000Z&step=day&by=model',
  ]),
  [{ to: 'today' }, 'from=today&to=today&step=day&by=model'],
])('the usage that %j chooses is asked for in whole steps, with the running one', async (search, query) => {
  expect(await askedFor(search)).toBe(`/console/api/tenants/${TENANT}/usage?${query}`);
});

it('one choice is one question, also when its defaults are named', () => {
  const { queryKey } = usageQuestion(TENANT, {});
  expect(usageQuestion(TENANT, { days: '30', by: 'model', step: 'hour' }).queryKey).toEqual(queryKey);
  for (const other of [{ days: '7' }, { from: NOW }, { by: 'key' }, { model: 'a' }, { keyId: 'b' }])
    expect(usageQuestion(TENANT, other).queryKey).not.toEqual(queryKey);
  expect(usageQuestion('ten_2', {}).queryKey).not.toEqual(queryKey);
});
