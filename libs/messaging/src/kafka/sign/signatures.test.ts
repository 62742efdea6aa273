import { createHash } from 'node:crypto';
import { SERVICES, type Service } from '@tollgate/contracts';
import type { OutgoingMessage } from '../publish/topic-publisher';
import { MessageKeys, type KeyLine } from './message-keys';
import { Signatures } from './signatures';
import { TEST_IDENTITY, TEST_KEYS } from './test-identity.fixture';

const TOPIC = 'a.charges';
const MESSAGE = {
  key: 'ten_1',
  value: Buffer.from('{"amount":"1"}'),
  headers: { 'tollgate-deadline': '17', other: 'x' },
};
const all = new Signatures(TEST_IDENTITY);
const of = (services: readonly Service[], lines: readonly KeyLine[]) =>
  new Signatures({ services, keys: new MessageKeys(lines) });
const signed = all.sign(TOPIC, MESSAGE, 'metering', ['billing']);
/** The message as delivered. */
function delivered({ key, value, headers = {} }: OutgoingMessage) {
  return {
    key: typeof key === 'string' ? Buffer.from(key) : key,
    value,
    headers: Object.fromEntries(
      Object.entries(headers).map(([name, text]) => [name, Array.isArray(text) ? text : Buffer.from(text!)]),
    ),
  };
}
const verify = (message: OutgoingMessage, topic = TOPIC, to: Service = 'billing', allowed: Service[] = ['metering']) =>
  all.verify(topic, delivered(message), to, allowed);

test('a message that a service has signed for another one is accepted, whatever headers others add', () => {
  expect(verify(signed)).toEqual({ from: 'metering' });
  expect(verify({ ...signed, headers: { ...signed.headers, traceparent: 'y' } })).toEqual({ from: 'metering' });
  expect(verify(all.sign(TOPIC, { key: null, partition: 0, value: null }, 'metering', ['billing']))).toEqual({
    from: 'metering',
  });
});

test.each<[string, Partial<OutgoingMessage>]>([
  ['another payload', { value: Buffer.from('{"amount":"9"}') }],
  ['a longer payload', { value: Buffer.concat([MESSAGE.value, Buffer.from(' ')]) }],
  ['no payload', { value: null }],
  ['an empty payload', { value: Buffer.alloc(0) }],
  ['another key', { key: 'ten_2' }],
  ['bytes as a key', { key: Buffer.from([0xff]) }],
  ['another deadline', { headers: { ...signed.headers, 'tollgate-deadline': '18' } }],
  ['a deadline twice', { headers: { ...signed.headers, 'tollgate-deadline': ['17', '17'] } }],
  ['another significant header', { headers: { ...signed.headers, 'tollgate-version': '1' } }],
  ['one header less', { headers: { 'tollgate-mac-billing': signed.headers!['tollgate-mac-billing'] } }],
])('%s under the same signature is refused', (_, changed) => {
  expect(verify({ ...signed, ...changed } as OutgoingMessage)).toEqual({
    reason: 'altered, or not signed by metering: the signature does not fit',
  });
});

test('a message whose signature or significant header has no value is refused', () => {
  const { headers, ...rest } = delivered(signed);
  // kafkajs delivers null, which its types do not have.
  const without = (name: string) =>
    all.verify(TOPIC, { ...rest, headers: { ...headers, [name]: null as never } }, 'billing', ['metering']);
  expect(without('tollgate-mac-billing')).toEqual({ reason: 'not signed for billing' });
  expect(without('tollgate-deadline')).toMatchObject({ reason: expect.stringContaining('does not fit') });
});

test('a message in another topic, or in that of another installation, is refused', () => {
  for (const topic of ['a.usage-events', 'b.charges', 'charges'])
    expect(verify(signed, topic)).toMatchObject({ reason: expect.stringContaining('does not fit') });
});

test('a message that is unsigned, or has a malformed signature, is refused', () => {
  expect(verify(MESSAGE)).toEqual({ reason: 'not signed for billing' });
  const header = signed.headers!['tollgate-mac-billing'] as string;
  for (const bad of ['', header.slice(1), `${header}A`, header.replace('metering', 'mars'), header.replace('1 ', '2 ')])
    expect(verify({ ...signed, headers: { ...signed.headers, 'tollgate-mac-billing': bad } })).toEqual({
      reason: 'its signature cannot be read',
    });
  expect(verify({ ...signed, headers: { ...signed.headers, 'tollgate-mac-billing': [header, header] } })).toEqual({
    reason: 'its signature cannot be read',
  });
});

test('a message of a service that may not send it is refused, whatever its key', () => {
  const gateway = all.sign(TOPIC, MESSAGE, 'gateway', ['billing']);
  expect(verify(gateway)).toEqual({ reason: 'signed by gateway, but only metering may send it' });
  // It claims to be another service.
  const header = (gateway.headers!['tollgate-mac-billing'] as string).replace('gateway', 'metering');
  expect(verify({ ...gateway, headers: { ...gateway.headers, 'tollgate-mac-billing': header } })).toMatchObject({
    reason: expect.stringContaining('does not fit'),
  });
});

test('a message for one service is refused by another one, and a reply is refused as a request', () => {
  const update = all.sign(TOPIC, MESSAGE, 'billing', ['gateway']);
  const moved = { ...update.headers, 'tollgate-mac-auth': update.headers!['tollgate-mac-gateway']! };
  expect(verify({ ...update, headers: moved }, TOPIC, 'auth', ['billing'])).toMatchObject({
    reason: expect.any(String),
  });
  const back = { ...update.headers, 'tollgate-mac-billing': update.headers!['tollgate-mac-gateway']! };
  expect(verify({ ...update, headers: back }, TOPIC, 'billing', ['billing', 'gateway'])).toMatchObject({
    reason: expect.any(String),
  });
});

test('the keys of one service can only forge messages to that service', () => {
  const stolen = TEST_KEYS.filter(({ from, to }) => from === 'gateway' || to === 'gateway');
  const thief = of(SERVICES, stolen);
  const able = SERVICES.flatMap((from) =>
    SERVICES.filter((to) => {
      try {
        thief.sign(TOPIC, MESSAGE, from, [to]);
        return true;
      } catch {
        return false;
      }
    }).map((to) => `${from} ${to}`),
  );
  for (const pair of able) expect(pair).toMatch(/gateway/);
  expect(able).not.toContain('metering billing');
});

test('both keys are accepted during a rotation, the first of them signs, and a removed one is refused', () => {
  const line = (id: string): KeyLine => ({
    ...{ from: 'metering', to: 'billing', id },
    secret: createHash('sha256').update(id).digest('hex'),
  });
  const [old, added, promoted, removed] = [['old'], ['old', 'new'], ['new', 'old'], ['new']].map((ids) =>
    of(['metering', 'billing'], ids.map(line)),
  );
  const believed = (by: Signatures, sender: Signatures) =>
    'from' in
    by.verify(TOPIC, delivered(sender.sign(TOPIC, MESSAGE, 'metering', ['billing'])), 'billing', ['metering']);
  // Each step together with the one before and the one after, because replicas do not take it at the same moment.
  const steps = [old!, added!, promoted!, removed!];
  for (const [index, step] of steps.entries())
    for (const other of steps.slice(Math.max(0, index - 1), index + 2)) expect(believed(step, other)).toBe(true);
  expect(believed(removed!, old!)).toBe(false);
  expect(believed(old!, promoted!)).toBe(false);
});
