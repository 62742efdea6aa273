import { MAX_KEY_TAGS, newId, type KeyNames, type UsageGroupRow } from '@tollgate/contracts';
import { randomInt } from 'node:crypto';
import { constants, gzipSync } from 'node:zlib';
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

/** `MAX_MESSAGE_BYTES` of the replies over Kafka. */
const MAX_REPLY_BYTES = 900 * 1024;
const text = (chars: number, one: () => string) => Array.from({ length: chars }, one).join('');
const letter = () => String.fromCharCode(97 + randomInt(26));
/** Three bytes each in UTF-8. */
const ideograph = () => String.fromCharCode(0x4e00 + randomInt(0x5000));
/** The longest names that tenants and operators can give, which compression shrinks little. */
const longest = (id: string): KeyNames => ({
  ...{ id, name: text(100, ideograph), owner: text(100, ideograph), tenantName: text(100, ideograph) },
  ...{ externalId: text(100, letter), tags: Array.from({ length: MAX_KEY_TAGS }, () => text(64, letter)) },
});

it('asks for all names in parts whose replies fit into a message, however long the names are', async () => {
  const replied: number[] = [];
  const services = {
    request: (_: string, { ids }: { ids: string[] }) => {
      const reply = { data: ids.map(longest) };
      replied.push(gzipSync(JSON.stringify(reply), { level: constants.Z_BEST_SPEED }).length);
      return Promise.resolve(reply);
    },
  } as unknown as Parameters<typeof namesOfKeys>[0];
  const ids = Array.from({ length: 1_001 }, () => newId('key'));
  expect([...(await namesOfKeys(services, new Set(ids))).keys()]).toEqual(ids);
  expect(Math.max(...replied)).toBeLessThan(MAX_REPLY_BYTES);
});
