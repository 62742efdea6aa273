import { UnavailableError } from '@tollgate/contracts';
import type { Catalog } from '../../catalog/catalog';
import { RuinousBodyError } from '../../inference-errors';
import { ClientLeftError } from './read-body';
import { readRequest } from '../../body/inference-request';
import { BodyReader, MAX_INLINE_BYTES, type Sender } from './body-reader';
import { bodyRules } from '../../body/body-rules.fixture';
import { cheapBound, countPrompt } from '../../prompt/prompt-bound';

const MODEL = bodyRules({ passthrough: new Set(['metadata']) });
const catalog = {
  find: (id: string) => (id === MODEL.id ? MODEL : undefined),
  all: () => [MODEL, bodyRules({ id: 'small', contextTokens: 8_192 })],
} as unknown as Catalog;
const reader = new BodyReader(catalog);
afterAll(() => reader.close());

const sender = (keyId: string, left = false): Sender => ({ keyId, models: null, client: { left } });
const chat = (content: string, more: object = {}) =>
  Buffer.from(JSON.stringify({ model: 'm', messages: [{ role: 'user', content }], ...more }));
const LARGE = 'some words of a long prompt '.repeat(40_000);

describe('a large body', () => {
  it('is read like a small one and counted, and only its part for the backend is kept', async () => {
    const raw = chat(LARGE, { max_tokens: 5, stream: true });
    expect(raw.length).toBeGreaterThan(MAX_INLINE_BYTES);
    const inline = readRequest('chat', raw, () => MODEL);
    const counted = countPrompt(inline, MODEL);
    const request = await reader.read('chat', Buffer.from(raw), sender('a'));
    expect(request).toEqual({ ...inline, body: null, counted });
    expect(cheapBound(request, MODEL)).toBe(cheapBound(inline, MODEL));
  });

  it.each([
    [chat(LARGE, { n_predict: 5 }), { code: 'unsupported_parameter', param: 'n_predict', status: 400 }],
    [
      chat(LARGE.repeat(4), { model: 'small' }),
      { code: 'context_length_exceeded', param: 'messages', status: 400, askedModel: 'small' },
    ],
    [chat(LARGE, { model: 'other' }), { code: 'model_not_found', param: 'model', status: 404, askedModel: 'other' }],
    [chat(LARGE).subarray(0, -1), { code: 'invalid_json', param: null, status: 400 }],
    [
      Buffer.from(`{"model":"m","metadata":${'['.repeat(MAX_INLINE_BYTES)}`),
      { code: 'invalid_value', param: 'metadata', status: 400 },
    ],
    [
      Buffer.from(`{"model":"m","metadata":{${Array.from({ length: 8_000 }, (_, i) => `"k${i}":0`).join()}}}`),
      { code: 'invalid_value', param: 'metadata', status: 400 },
    ],
  ])('is refused like a small one, by field (%#)', async (raw, refusal) => {
    await expect(reader.read('chat', raw, sender('a'))).rejects.toMatchObject(refusal);
  });

  it('costs the main thread less than a quarter of its reading time', async () => {
    const raw = chat(LARGE.repeat(4));
    const cpuMicros = async (work: () => unknown): Promise<number> => {
      const before = process.threadCpuUsage();
      await work();
      const { user, system } = process.threadCpuUsage(before);
      return user + system;
    };
    // Runs both once before, so that everything is loaded.
    await reader.read('chat', Buffer.from(raw), sender('a'));
    const here = await cpuMicros(() =>
      countPrompt(
        readRequest('chat', raw, () => MODEL),
        MODEL,
      ),
    );
    // The least of several runs, as this thread also collects the test runner's garbage.
    let there = Infinity;
    for (let i = 0; i < 5 && there > here / 4; i++) {
      const bytes = Buffer.from(raw);
      there = Math.min(there, await cpuMicros(() => reader.read('chat', bytes, sender('a'))));
      // Transferred, not copied.
      expect(bytes).toHaveLength(0);
    }
    expect(there).toBeLessThan(here / 4);
  });

  it('waits for other bodies of its key, so that other keys get a turn in between', async () => {
    const ended: string[] = [];
    const read = async (name: string, keyId: string) => {
      await reader.read('chat', chat(LARGE), sender(keyId));
      ended.push(name);
    };
    await Promise.all([read('a1', 'a'), read('a2', 'a'), read('a3', 'a'), read('a4', 'a'), read('b1', 'b')]);
    expect(ended.filter((name) => name !== 'b1')).toEqual(['a1', 'a2', 'a3', 'a4']);
    expect(ended.indexOf('b1')).toBeLessThan(ended.indexOf('a3'));
  });

  it('is not read for a client that left, nor after the reader is closed', async () => {
    await expect(reader.read('chat', chat(LARGE), sender('a', true))).rejects.toThrow(ClientLeftError);
    const other = new BodyReader(catalog);
    const reading = other.read('chat', chat(LARGE), sender('a')) as Promise<unknown>;
    reading.catch(() => undefined);
    // Reading has begun by then: promises run before immediates.
    await new Promise(setImmediate);
    await other.close();
    await expect(reading).rejects.toThrow(UnavailableError);
  });

  it('waits only for its time limit, both for a worker and for other bodies of its key', async () => {
    // Less than a worker needs to start.
    const other = new BodyReader(catalog, { maxWaitMs: 1, maxReadMs: 600_000, readTimeoutMs: 600_000 });
    const reads = [1, 2].map(() => other.read('chat', chat(LARGE), sender('a')) as Promise<unknown>);
    for (const { status, reason } of (await Promise.allSettled(reads)) as PromiseRejectedResult[]) {
      expect(status).toBe('rejected');
      expect(reason).toBeInstanceOf(UnavailableError);
      expect(reason).not.toBeInstanceOf(RuinousBodyError);
    }
    await other.close();
  });

  it('that takes a worker too long is reported as ruinous, and the next one gets another worker', async () => {
    const other = new BodyReader(catalog, { maxWaitMs: 600_000, maxReadMs: 1, readTimeoutMs: 600_000 });
    const reading = () => other.read('chat', chat(LARGE), sender('a')) as Promise<unknown>;
    await expect(reading()).rejects.toThrow(RuinousBodyError);
    await expect(reading()).rejects.toThrow('took too long');
    await other.close();
  });

  it('whose worker gets no time from the machine is given up, but not reported as ruinous', async () => {
    const other = new BodyReader(catalog, { maxWaitMs: 600_000, maxReadMs: 600_000, readTimeoutMs: 1 });
    const error: unknown = await (other.read('chat', chat(LARGE), sender('a')) as Promise<unknown>).catch(
      (reason: unknown) => reason,
    );
    expect(error).toBeInstanceOf(UnavailableError);
    expect(error).not.toBeInstanceOf(RuinousBodyError);
    expect((error as Error).message).toContain('took too long');
    await other.close();
  });
});
