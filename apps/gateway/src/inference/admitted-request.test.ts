import type { UsageDraft } from '@tollgate/contracts';
import type { Hold } from '../admit/admit';
import type { Backend, CatalogModel } from '../catalog/catalog';
import { PromptEstimate } from '../prompt/prompt-estimate';
import { TokenizerThrottle } from '../prompt/tokenizer-throttle';
import { countTokens } from '../prompt/tokenizer';
import { DeliveredText } from '../upstream/count/delivered-text';
import { type InferenceRequest, readRequest } from '../body/inference-request';
import { bodyRules } from '../body/body-rules.fixture';
import { AdmittedRequest } from './admitted-request';

const price = {
  version: 'v',
  inputFemtos: '1000000',
  cachedInputFemtos: '0',
  outputFemtos: '1000000',
  requestNanos: '0',
};
const model = {
  ...bodyRules({ contextTokens: 1_000_000, maxTokensPerImage: null, maxTokensPerAudio: null }),
  usageBand: { min: 0.5, max: 2 },
} as CatalogModel;
const BACKEND = 'http://backend/v1';
const STREAMS = 250;
const PROMPT = 'a few words '.repeat(1_365);
const WORDS = ' ten more words that nobody has counted until this moment';
/** 128 KiB hold seven of these prompts. */
const MOST_IN_ONE_TURN = 7;

function admitted(holdNanos = 10n ** 9n) {
  const request = readRequest(
    'chat',
    Buffer.from(JSON.stringify({ model: 'm', messages: [{ role: 'user', content: PROMPT }] })),
    () => model,
  );
  return admittedWith(request, { holdNanos });
}

/** Held with the bound of its prompt by bytes. */
function admittedWith(request: InferenceRequest, more: Partial<Hold>) {
  const hold = { prompt: PromptEstimate.toHold(request, model, 0), ...more } as Hold;
  return new AdmittedRequest(request, model, { price } as UsageDraft, hold, 'r');
}

function stream() {
  const text = new DeliveredText((words) => countTokens('o200k_base', words));
  for (let i = 0; i < 10; i += 1) text.add({ choice: 0, text: WORDS, least: 1 });
  const one = admitted();
  return {
    prepare: (throttle: TokenizerThrottle) => one.countForRecord(text, 10, throttle),
    record: () => one.record(text, 10)!,
  };
}

const truth = () => {
  const tokens = admitted().count(countTokens('o200k_base', WORDS.repeat(10)));
  return { ...tokens, costNanos: BigInt(tokens.promptTokens + tokens.completionTokens) };
};

it('the record of a stream that a fallback serves has its model and its price', () => {
  const text = new DeliveredText((words) => countTokens('o200k_base', words));
  text.add({ choice: 0, text: WORDS, least: 1 });
  const one = admitted();
  expect(one.record(text, 1)).not.toHaveProperty('served');
  const dear = { ...price, version: 'dear', inputFemtos: '2000000', outputFemtos: '3000000' };
  one.servedBy({ ...model, id: 'other', price: dear });
  const { promptTokens, completionTokens, costNanos, served } = one.record(text, 1)!;
  expect(served).toEqual({ model: 'other', price: dear });
  expect(costNanos).toBe(BigInt(2 * promptTokens + 3 * completionTokens));
});

it('a fallback is asked for no more output than it gives, and than its context has room for', () => {
  const request = readRequest(
    'chat',
    Buffer.from('{"model":"m","messages":[{"role":"user","content":"a"}]}'),
    () => model,
  );
  const [small, short] = [
    { ...model, id: 'small', maxOutputTokens: 2_048 },
    { ...model, id: 'short', maxOutputTokens: 5_000, contextTokens: 1_000 },
  ] as CatalogModel[];
  const one = admittedWith(request, { maxTokensPerChoice: 4_096, fallbacks: [small!, short!] });
  const room = 1_000 - one.hold.prompt.upperBound;
  const backend = { model: 'inner', dialect: 'any', passthrough: new Set() } as unknown as Backend;
  const sent = () => JSON.parse(one.bodyFor(backend).toString()).max_tokens;
  expect(sent()).toBe(4_096);
  const asked = [short!, small!].map((of) => {
    one.servedBy(of);
    return [sent(), one.maxTokensPerChoice];
  });
  expect(asked).toEqual([
    [room, room],
    [2_048, 2_048],
  ]);
  // A count of the prompt finds more room. The answer still ends at what was sent.
  one.servedBy(short!);
  one.count(0);
  expect([sent(), one.maxTokensPerChoice]).toEqual([room, room]);
});

it('a fallback is asked for what its context has room for beside the longest prompt, if they were counted', () => {
  const prompt = Array<string>(4).fill(' word'.repeat(500));
  const raw = Buffer.from(JSON.stringify({ model: 'm', prompt, max_tokens: 4_096 }));
  const request = readRequest('completion', raw, () => model);
  const short = { ...model, id: 'short', contextTokens: 1_000 };
  const counted = PromptEstimate.toHold(request, model, 0).counted();
  const one = admittedWith(request, { prompt: counted, maxTokensPerChoice: 4_096, fallbacks: [short] });
  const backend = { model: 'inner', dialect: 'any', passthrough: new Set() } as unknown as Backend;
  one.servedBy(short);
  expect(JSON.parse(one.bodyFor(backend).toString()).max_tokens).toBe(500);
});

it('a fallback is charged at most its own price of the prompt held and of the output that it is asked for', () => {
  const raw = Buffer.from('{"model":"m","n":2,"messages":[{"role":"user","content":"a"}]}');
  const request = readRequest('chat', raw, () => model);
  const prices = { promptFemtosPerToken: 1_000_000n, outputFemtosPerToken: 2_000_000n, requestFemtos: 7_000_000n };
  const little = { ...model, ...prices, id: 'little', maxOutputTokens: 50 };
  const one = admittedWith(request, { maxTokensPerChoice: 4_096, fallbacks: [little] });
  expect(one.payable(9_000n)).toBe(9_000n);
  one.servedBy(little);
  expect(one.payable(9_000n)).toBe(BigInt(one.hold.prompt.upperBound) + 2n * 2n * 50n + 7n);
  expect(one.payable(300n)).toBe(300n);
});

describe('the records of many streams', () => {
  it('are exact after one preparation, which counts a bounded amount in each turn of the event loop', async () => {
    // Long enough for any machine.
    const throttle = new TokenizerThrottle(60_000);
    const streams = Array.from({ length: STREAMS }, stream);
    const expected = truth();
    const prepared = Promise.all(streams.map((one) => one.prepare(throttle)));
    const counted = () => streams.filter((one) => one.record().promptTokens === expected.promptTokens).length;
    // Still in the turn of the event loop that started them.
    await new Promise<void>((resolve) => process.nextTick(resolve));
    const perTurn = [counted()];
    for (let before = perTurn[0]!; before < STREAMS;) {
      await new Promise(setImmediate);
      const now = counted();
      perTurn.push(now - before);
      before = now;
    }
    await prepared;
    expect(Math.max(...perTurn)).toBeLessThanOrEqual(MOST_IN_ONE_TURN);
    for (const one of streams) expect(one.record()).toEqual(expected);
  });

  it('are too low if there is no time to count, and the preparation still ends', async () => {
    const throttle = new TokenizerThrottle(0);
    const streams = Array.from({ length: STREAMS }, stream);
    const prepare = () => Promise.all(streams.map((one) => one.prepare(throttle)));
    const expected = truth();
    const missing = () => streams.filter((one) => one.record().promptTokens !== expected.promptTokens);
    await prepare();
    const left = missing();
    expect(left.length).toBeGreaterThanOrEqual(STREAMS - 2 * MOST_IN_ONE_TURN);
    for (const { record } of left) {
      expect(record().promptTokens).toBe(6);
      expect(record().completionTokens).toBeLessThanOrEqual(expected.completionTokens);
    }
    // Counted streams leave the time to the others.
    await prepare();
    expect(missing().length).toBeLessThan(left.length);
  });

  it('wait for the bytes that are counted: the body, and its tools once more as a template may indent them', async () => {
    const tools = [{ type: 'function', function: { name: 'f', parameters: { enum: [[1], [2]] } } }];
    const body = { model: 'm', messages: [{ role: 'user', content: 'a' }], tools };
    const request = readRequest('chat', Buffer.from(JSON.stringify(body)), () => model);
    const weighed: number[] = [];
    const throttle = { take: (bytes: number) => Promise.resolve(weighed.push(bytes) > 0) } as TokenizerThrottle;
    const none = new DeliveredText(() => 0);
    const one = admittedWith(request, {});
    await one.countForRecord(none, 1, throttle);
    await one.countForRecord(none, 1, throttle);
    expect(weighed).toEqual([request.outgoing.bytes + JSON.stringify(tools, null, 4).length]);
  });

  it('have the whole cost, even above the hold', async () => {
    const text = new DeliveredText((words) => countTokens('o200k_base', words));
    text.add({ choice: 0, text: WORDS, least: 1 });
    const one = admitted(1n);
    await one.countForRecord(text, 1, new TokenizerThrottle());
    const { promptTokens, completionTokens, costNanos } = one.record(text, 1)!;
    expect(costNanos).toBe(BigInt(promptTokens + completionTokens));
  });

  it('have what another count has found already, even if the throttle allows no more', async () => {
    const text = new DeliveredText((words) => countTokens('o200k_base', words));
    text.add({ choice: 0, text: WORDS, least: 1 });
    const one = admitted();
    const { promptTokens } = one.count(0);
    const tokens = text.tokensWith([]);
    const throttle = new TokenizerThrottle();
    throttle.take = () => Promise.resolve(false);
    await one.countForRecord(text, 1, throttle);
    expect(one.record(text, 1)).toMatchObject({ promptTokens, completionTokens: tokens });
  });

  it('are null before any output, and nothing is counted', async () => {
    const text = new DeliveredText(() => {
      throw new Error('counted');
    });
    const one = admitted();
    await one.countForRecord(text, 0, new TokenizerThrottle());
    expect(one.record(text, 0)).toBeNull();
  });
});

describe('a request is settled', () => {
  /** An output that notes whether it was counted. */
  function output(tokens: number, estimate = tokens) {
    const counts = { count: 0 };
    const counted = { estimate: () => estimate, tokens: () => ((counts.count += 1), tokens), calls: 0, reasons: false };
    return { counts, output: counted, wentToLimit: false };
  }
  const reported = (promptTokens: number, completionTokens: number) => ({
    promptTokens,
    cachedTokens: 0,
    completionTokens,
  });

  it('at a report that an estimate supports, without counting', () => {
    const one = admitted();
    const delivered = output(1_000);
    const likely = reported(Math.round(truth().promptTokens * 1.1), 1_100);
    expect(one.settleAt(likely, delivered, BACKEND)).toEqual({
      tokens: likely,
      estimated: false,
      details: {},
    });
    expect(delivered.counts.count).toBe(0);
    const text = new DeliveredText(() => 0);
    text.add({ choice: 0, text: WORDS, least: 1 });
    expect(one.record(text, 1)!.promptTokens).toBe(6);
  });

  it('at a report that the count supports, if the estimate cannot decide', () => {
    const delivered = output(1_000, 300);
    const possible = reported(truth().promptTokens, 600);
    expect(admitted().settleAt(possible, delivered, BACKEND)).toEqual({
      tokens: possible,
      estimated: false,
      details: {},
    });
    expect(delivered.counts.count).toBe(1);
  });

  it('at each plausible number, and at our own count instead of an implausible one', () => {
    const { promptTokens } = truth();
    expect(admitted().settleAt(reported(promptTokens, 9_000), output(1_000), BACKEND)).toEqual({
      tokens: reported(promptTokens, 1_000),
      estimated: true,
      details: {},
    });
    expect(admitted().settleAt(reported(9_000_000, 1_000), output(1_000), BACKEND)).toEqual({
      tokens: reported(promptTokens, 1_000),
      estimated: true,
      details: {},
    });
    expect(admitted().settleAt('unreadable', output(1_000), BACKEND)).toEqual({
      tokens: reported(promptTokens, 1_000),
      estimated: true,
      details: {},
    });
  });

  it('at a report that is a few tokens off for a short output, but never at zero for some output', () => {
    const { promptTokens } = truth();
    const at = (completion: number, own: number) =>
      admitted().settleAt(reported(promptTokens, completion), output(own), BACKEND);
    expect(at(1, 0)).toMatchObject({ tokens: { completionTokens: 1 }, estimated: false });
    expect(at(15, 2)).toMatchObject({ tokens: { completionTokens: 15 }, estimated: false });
    expect(at(21, 2)).toMatchObject({ tokens: { completionTokens: 2 }, estimated: true });
    expect(at(0, 2)).toMatchObject({ tokens: { completionTokens: 2 }, estimated: true });
  });

  it.each([true, false])(
    'at what a template makes of tools that it indents, and no more (counted: %s)',
    (isCounted) => {
      const schema = { properties: { x: { enum: Array.from({ length: 700 }, () => [1]) } } };
      const tools = [{ type: 'function', function: { name: 'f', parameters: schema } }];
      const body = { model: 'm', messages: [{ role: 'user', content: 'a' }], tools };
      const request = readRequest('chat', Buffer.from(JSON.stringify(body)), () => model);
      const one = admittedWith(
        request,
        isCounted ? { prompt: PromptEstimate.toHold(request, model, 0).counted() } : {},
      );
      const compact = one.count(0).promptTokens;
      const [short, long] = [0, 4].map((indent) => countTokens('o200k_base', JSON.stringify(tools, null, indent)));
      const indented = compact - short! + long!;
      expect(indented).toBeGreaterThan(3.5 * compact);
      expect(one.hold.prompt.upperBound).toBeGreaterThan(indented);
      const settled = (promptTokens: number) => one.settleAt(reported(promptTokens, 10), output(10), BACKEND);
      for (const honest of [compact, indented])
        expect(settled(honest)).toMatchObject({ tokens: reported(honest, 10), estimated: false });
      for (const wrong of [Math.floor(compact / 2) - 10, 2 * indented + 1_000])
        expect(settled(wrong)).toMatchObject({ tokens: reported(compact, 10), estimated: true });
    },
  );
});
