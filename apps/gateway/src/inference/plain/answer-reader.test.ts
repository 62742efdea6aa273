import { AnswerReader, MAX_INLINE_BYTES } from './answer-reader';
import type { RequestedAnswer } from './plain-output';
import { endPlainResponse } from './plain-response';

const GRANTED = { take: () => Promise.resolve(true) };
const ALWAYS = { endsAtMs: Infinity, isGone: () => false };
const UNLIMITED = { maxWaitMs: 600_000, maxReadMs: 600_000, readTimeoutMs: 600_000 };
const reader = new AnswerReader(GRANTED, UNLIMITED);
afterAll(() => reader.close());

const owner = (tenantId: string) => ({ tenantId, logged: {} });
const asked = (more: Partial<RequestedAnswer> = {}): RequestedAnswer => ({
  kind: 'chat',
  choices: 1,
  prompts: 1,
  structuredOutput: false,
  encodingFormat: 'float',
  maxTokensPerChoice: 1_000,
  identity: { id: 'ours', object: 'chat.completion', createdSeconds: 7, model: 'public' },
  tokenizer: 'o200k_base',
  usageBand: { min: 0.5, max: 2 },
  ...more,
});
/** The same answer, large enough for a worker. */
const padded = (json: string) => Buffer.from(json + ' '.repeat(MAX_INLINE_BYTES));

/** All that the rest of the gateway gets of an answer, with the bytes for the client. */
async function readingOf(body: Buffer, of: RequestedAnswer, by = reader, until = ALWAYS) {
  const read = await by.read(body, of, owner('a'), until);
  if (read.kind !== 'usable' || read.answer.kind === 'refused') return read;
  const { begun, output, ...more } = read.answer;
  const sent = endPlainResponse(begun, { total_tokens: 1 }).toString('latin1');
  return { ...more, sent, estimate: output.estimate(), tokens: output.tokens(), isText: typeof begun === 'string' };
}

/** Whether this thread parsed something long meanwhile. */
async function parsedHere(work: () => Promise<unknown>): Promise<boolean> {
  const parse = jest.spyOn(JSON, 'parse');
  await work();
  const isLong = parse.mock.calls.some(([text]) => text.length > MAX_INLINE_BYTES / 2);
  parse.mockRestore();
  return isLong;
}

const choice = (more: object) => ({ index: 0, message: { role: 'assistant', content: 'Good day.' }, ...more });
const withChoices = (...choices: object[]) =>
  JSON.stringify({ choices, usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 } });
const vectors = (...data: unknown[]) =>
  JSON.stringify({ data: data.map((embedding, index) => ({ index, embedding })), usage: { prompt_tokens: 4 } });
const embedding = asked({ kind: 'embedding', choices: 0, prompts: 2 });
const base64 = { ...embedding, encodingFormat: 'base64' } as const;
const completion = asked({ kind: 'completion', choices: 2 });
const LONG = 'word '.repeat(2_000);
const deep = (levels: number) => `{"choices":[{"message":{},"x":${'['.repeat(levels)}1${']'.repeat(levels)}}]}`;

describe('a large answer', () => {
  it.each<[string, string, RequestedAnswer?]>([
    ['a chat', withChoices(choice({ finish_reason: 'stop' }))],
    ['a chat that went to its limit', withChoices(choice({ finish_reason: 'length' }))],
    ['text beyond ASCII', withChoices(choice({ message: { content: 'Grüße, 世界 👋' } }))],
    ['a completion', JSON.stringify({ choices: [{ text: 'a' }, { text: 'b', finish_reason: 'length' }] }), completion],
    ['vectors', vectors([0.5, -1e-9], [1, 2]), embedding],
    ['vectors to encode', vectors([0.5, -1], [1, '2', null]), base64],
    ['vectors that are encoded', vectors('AAAA', 'AAAA'), base64],
    ['vectors that are no numbers', vectors([{ valueOf: 1, toString: 1 }]), base64],
    ['a byte order mark', `\ufeff${withChoices(choice({}))}`],
    ['a duplicate member', '{"choices":[{"message":{"content":"long text","content":"short"}}]}'],
    ['duplicate choices', `{"choices":[{"message":{"content":"first"}}],${withChoices(choice({})).slice(1)}`],
    ['empty unknown members', withChoices(choice({ unknown: null, message: { content: 'a', other: '' } }))],
    ['a long number', `{"choices":[{"message":{"content":"a"},"x":0.${'1'.repeat(100)}}]}`],
    ['a number that JavaScript cannot hold', '{"choices":[{"message":{"content":"a"},"x":12345678901234567890}]}'],
    ['no usage', JSON.stringify({ choices: [choice({})] })],
    ['an impossible usage', JSON.stringify({ choices: [choice({})], usage: { prompt_tokens: -1 } })],
    ['text without an estimate', withChoices(choice({ message: { content: 'qXz#'.repeat(50) } }))],
    ['text that is cut', withChoices(choice({ message: { content: LONG } }))],
    ['text that cannot be cut', withChoices(choice({ message: { content: LONG }, logprobs: { content: [] } }))],
    ['more choices than requested', withChoices(choice({}), choice({}))],
    ['a chat without a message', withChoices({ text: 'a' })],
    ['no choices', withChoices()],
    ['deep nesting', deep(500)],
    ['too deep nesting', deep(513)],
    ['no JSON', '<html></html>'],
    ['half of the JSON', withChoices(choice({})).slice(0, -9)],
    ['null', 'null'],
  ])('is read like a small one: %s', async (_, json, of = asked()) => {
    const [small, large] = [await readingOf(Buffer.from(json), of), await readingOf(padded(json), of)];
    const ofText = 'isText' in small;
    expect(large).toEqual(ofText ? { ...small, isText: false } : small);
    if (ofText) expect(small.isText).toBe(true);
  });

  it('is parsed in a worker, which gets its bytes and not a copy of them', async () => {
    const body = () => padded(withChoices(choice({})));
    const [large, small] = [body(), body().subarray(0, MAX_INLINE_BYTES)];
    expect(await parsedHere(() => readingOf(large, asked()))).toBe(false);
    expect(large).toHaveLength(0);
    expect(await parsedHere(() => readingOf(small, asked()))).toBe(true);
    expect(small).toHaveLength(MAX_INLINE_BYTES);
  });

  it('waits for other answers of its tenant, so that other tenants get a turn in between', async () => {
    const ended: string[] = [];
    const read = async (name: string, tenantId: string) => {
      await reader.read(padded(withChoices(choice({}))), asked(), owner(tenantId), ALWAYS);
      ended.push(name);
    };
    await Promise.all([read('a1', 'a'), read('a2', 'a'), read('a3', 'a'), read('b1', 'b')]);
    expect(ended.filter((name) => name !== 'b1')).toEqual(['a1', 'a2', 'a3']);
    expect(ended.indexOf('b1')).toBeLessThan(ended.indexOf('a3'));
  });

  const body = () => padded(withChoices(choice({})));
  const once = async (limits: Partial<typeof UNLIMITED>, until: Partial<typeof ALWAYS> = {}) => {
    const other = new AnswerReader(GRANTED, { ...UNLIMITED, ...limits });
    const readings = [1, 2].map(() => other.read(body(), asked(), owner('a'), { ...ALWAYS, ...until }));
    const [first, second] = await Promise.all(readings);
    await other.close();
    expect(second).toEqual(first);
    return first;
  };

  it('that takes a worker too long is unusable, and the next one gets another worker', async () => {
    expect(await once({ maxReadMs: 0 })).toEqual({
      kind: 'unusable',
      reason: `an answer of ${body().length} bytes was not read: took too long`,
    });
  });

  it.each([
    ['no worker is free in time', { maxWaitMs: 1 }, {}],
    ['the machine gives the worker no time', { readTimeoutMs: 0 }, {}],
    ['the time of its request is over', {}, { endsAtMs: 0 }],
    ['nobody waits for it', {}, { isGone: () => true }],
  ])('is left unread if %s', async (_, limits, until) => {
    expect(await once(limits, until)).toEqual({ kind: 'unread' });
  });

  it('is left unread if the reader is closed', async () => {
    const other = new AnswerReader(GRANTED, UNLIMITED);
    const reading = other.read(body(), asked(), owner('a'), ALWAYS);
    // Reading has begun by then: promises run before immediates.
    await new Promise(setImmediate);
    await other.close();
    expect(await reading).toEqual({ kind: 'unread' });
  });
});
