import { costNanos, newId, TOPICS, type BudgetEvent, type UsageEvent } from '@tollgate/contracts';
import Ajv2020, { type ValidateFunction } from 'ajv/dist/2020';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { toUsageEvent } from '../../apps/gateway/src/settle/usage-event';
import { validateUsageEvent } from '../../apps/metering/src/consume/read-usage-event';
import { seal } from '../../libs/messaging/src/envelope';

// The published schemas of events (docs/events) against the code, and against their first publication.
const PUBLISHED = ['usage-events', 'budget-events'] as const;
type Published = (typeof PUBLISHED)[number];
interface Schema {
  type?: string | string[];
  required?: string[];
  properties?: Record<string, Schema>;
  [keyword: string]: unknown;
}

const read = (folder: string, topic: Published): Schema =>
  JSON.parse(readFileSync(join(__dirname, folder, `${topic}.v${TOPICS[topic].schemaVersion}.schema.json`), 'utf8'));
const schemaOf = (topic: Published) => read('../../docs/events', topic);
const compiled = (topic: Published): ValidateFunction => new Ajv2020({ strict: true }).compile(schemaOf(topic));

const at = '2026-11-21T10:00:00.000Z';
const amounts = { inputFemtos: '150000000', cachedInputFemtos: '0', outputFemtos: '1', requestNanos: '0' };
/** With all fields. The compiler asks for a field that is new. */
const USAGE: Required<UsageEvent> = {
  ...{ id: newId('req'), tenantId: newId('ten'), keyId: newId('key'), model: 'm', kind: 'chat', stream: true },
  ...{ callerRequestId: 'my-own_17', price: { version: 'v', ...amounts }, defaultBudgets: { keyCents: 5 } },
  ...{ startedAt: at, endedAt: at, promptTokens: 9, cachedTokens: 1, completionTokens: 5, reasoningTokens: 2 },
  ...{ costNanos: '7', overrunNanos: '0', estimated: false, outcome: 'expired', backend: 'http://gpu/v1' },
  traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  life: {
    ...{ key: [600, 1_000_000, 64], tenant: [600, 1_000_000, 64], heldNanos: '9', endNanos: '10', extensions: 1 },
    ...{
      firstMs: 12,
      failed: [{ backend: 'http://gpu/v1', why: 'failed', status: 500, code: 'ECONNRESET' }],
      asked: 'n',
    },
  },
};
const BUDGET: Required<BudgetEvent> = {
  ...{ id: newId('evt'), tenantId: newId('ten'), keyId: null, period: '2026-11', thresholdPercent: 50 },
  ...{ budgetCents: 100, spentNanos: '500000000', at },
};
const WHOLE: Record<Published, object> = { 'usage-events': USAGE, 'budget-events': BUDGET };
const messageOf = (topic: Published, event: object) => seal(TOPICS[topic], [event])[0]!;

/** As a consumer reads it. */
const without = (message: { data: object }, name: string): unknown =>
  JSON.parse(JSON.stringify({ ...message, data: { ...message.data, [name]: undefined } }));

describe.each(PUBLISHED)('the schema of %s', (topic) => {
  it('names all fields of the event and no others, and accepts one with all of them', () => {
    const { data } = schemaOf(topic).properties!;
    expect(Object.keys(data!.properties!).sort()).toEqual(Object.keys(WHOLE[topic]).sort());
    const validate = compiled(topic);
    expect([validate(messageOf(topic, WHOLE[topic])), validate.errors]).toEqual([true, null]);
  });

  it('refuses an event without a required field, and one of another version', () => {
    const validate = compiled(topic);
    for (const name of schemaOf(topic).properties!['data']!.required!)
      expect([name, validate(without(messageOf(topic, WHOLE[topic]), name))]).toEqual([name, false]);
    expect(validate({ ...messageOf(topic, WHOLE[topic]), v: 2 })).toBe(false);
  });

  it('is compatible with what was published first', () => {
    expect(breaks(read('events', topic), schemaOf(topic), topic)).toEqual([]);
  });
});

it('the schema accepts what a gateway settles, with and without the fields that may be absent', () => {
  const { callerRequestId, defaultBudgets, ...draft } = USAGE;
  const counts = { tokens: USAGE, cost: costNanos(USAGE, USAGE.price), estimated: true };
  const settled = { ...counts, outcome: 'complete' as const, holdNanos: 10n ** 9n, endedMs: Date.parse(at) };
  const validate = compiled('usage-events');
  const more = { reasoningTokens: 1, backend: 'simulator:', life: USAGE.life };
  for (const event of [
    toUsageEvent(only(draft), settled),
    toUsageEvent({ ...only(draft), callerRequestId, defaultBudgets }, { ...settled, ...more }),
  ]) {
    expect([validate(messageOf('usage-events', event)), validate.errors]).toEqual([true, null]);
    expect(validateUsageEvent(event)).toBeNull();
  }
});

/** The fields of a draft. */
function only({ id, tenantId, keyId, model, kind, stream, price, startedAt }: Omit<UsageEvent, 'callerRequestId'>) {
  return { id, tenantId, keyId, model, kind, stream, price, startedAt };
}

describe('the comparison of two schemas finds', () => {
  const event = (fields: object, required: string[] = []): Schema => ({
    type: 'object',
    required,
    properties: fields as never,
  });
  const text = { type: 'string', pattern: '^a' };
  const before = event({ a: text, b: { enum: ['x', 'y'] } }, ['a']);
  it.each<[string, Schema, string[]]>([
    [
      'nothing in a new field or a description',
      event({ ...before.properties, c: {}, a: { ...text, description: 'd' } }, ['a', 'c']),
      [],
    ],
    ['a lost field', event({ a: text }, ['a']), ['.b']],
    ['a field that is no longer required', event(before.properties!, []), ['.a']],
    ['another type', event({ ...before.properties, a: { ...text, type: 'number' } }, ['a']), ['.a']],
    ['another pattern', event({ ...before.properties, a: { type: 'string' } }, ['a']), ['.a']],
    ['a new value', event({ ...before.properties, b: { enum: ['x', 'y', 'z'] } }, ['a']), ['.b']],
  ])('%s', (_, after, places) => {
    expect(breaks(before, after, '')).toEqual(places);
  });
});

const COMPARED_APART = new Set(['description', 'title', 'properties', 'required']);

/** Where a consumer of `before` could not read what `after` allows. */
function breaks(before: Schema, after: Schema, path: string): string[] {
  const meaning = (schema: Schema) =>
    JSON.stringify(
      Object.entries(schema)
        .filter(([rule]) => !COMPARED_APART.has(rule))
        .sort(([a], [b]) => (a < b ? -1 : 1)),
    );
  const own = meaning(before) === meaning(after) ? [] : [path];
  const optional = (before.required ?? []).filter((name) => !after.required?.includes(name));
  const below = Object.entries(before.properties ?? {}).flatMap(([name, schema]) => {
    const now = after.properties?.[name];
    return now === undefined ? [`${path}.${name}`] : breaks(schema, now, `${path}.${name}`);
  });
  return [...new Set([...own, ...optional.map((name) => `${path}.${name}`), ...below])];
}
