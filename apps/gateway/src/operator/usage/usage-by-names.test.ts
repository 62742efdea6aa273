import type { KeyNames, UsageGroupRow } from '@tollgate/contracts';
import { byNames, groupsOfUsage, namesOfKeys } from './usage-by-names';

const row = (key: string, requests: number, more: object = {}): UsageGroupRow => ({
  ...{ key, requests, failed: 0, clientClosed: 0, promptTokens: requests, cachedTokens: 0, completionTokens: 0 },
  ...{ reasoningTokens: 0, totalTokens: requests, costCents: 0, costNanos: String(requests * 4_000_000), ...more },
});
const named = (id: string, owner: string | null, tags: string[]): [string, KeyNames] => [
  id,
  { id, name: id, owner, tags, tenantName: 'T', externalId: null },
];
const names = new Map([named('a', 'anna', ['x', 'y']), named('b', 'anna', ['y']), named('c', null, [])]);

it('asks metering for keys only where owners or tags need them', () => {
  expect(groupsOfUsage(['day', 'owner'])).toEqual(['day', 'key']);
  expect(groupsOfUsage(['tag', 'key'])).toEqual(['key']);
  expect(groupsOfUsage(['model', 'backend'])).toEqual(['model', 'backend']);
});

it('adds the keys of an owner up, an unknown key to nobody, with cents that add up', () => {
  const rows = [row('a', 1), row('b', 2), row('c', 4), row('unknown', 1)];
  const groups = byNames(rows, ['owner'], names);
  expect(groups.map(({ owner, requests, costCents, key }) => [owner, requests, costCents, key])).toEqual([
    ['anna', 3, 1, undefined],
    [null, 5, 2, undefined],
  ]);
});

it('has a key with several tags in the group of each, and one without in a group of its own', () => {
  const rows = [
    row('a', 1, { day: '2026-11-02' }),
    row('b', 2, { day: '2026-11-01' }),
    row('c', 4, { day: '2026-11-01' }),
  ];
  expect(byNames(rows, ['tag', 'day'], names).map(({ day, tag, requests }) => [day, tag, requests])).toEqual([
    ['2026-11-01', 'y', 2],
    ['2026-11-01', null, 4],
    ['2026-11-02', 'x', 1],
    ['2026-11-02', 'y', 1],
  ]);
});

it('asks for names of at most 1,000 keys at once', async () => {
  const asked: number[] = [];
  const services = {
    request: (_: string, { ids }: { ids: string[] }) => {
      asked.push(ids.length);
      return Promise.resolve({ data: ids.map((id) => named(id, 'o', [])[1]) });
    },
  } as unknown as Parameters<typeof namesOfKeys>[0];
  const found = await namesOfKeys(services, new Set(Array.from({ length: 2_001 }, (_, index) => `key ${index}`)));
  expect([found.size, asked]).toEqual([2_001, [1_000, 1_000, 1]]);
});
