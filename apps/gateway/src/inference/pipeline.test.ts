import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import type { Admitter } from '../admit/admit';
import { BodyMemory } from '../admit/body-memory';
import { RefusedKeys } from '../admit/refused-keys';
import { WastedRequests } from '../admit/wasted-requests';
import type { Catalog } from '../catalog/catalog';
import { InferenceError } from '../inference-errors';
import type { Settlements } from '../settle/settlement';
import type { Authentication } from './authentication';
import type { BodyReader } from './read/body-reader';
import type { Client } from './client/client';
import { Intake } from './read/intake';
import { Pipeline } from './pipeline';
import { inProgress } from './refusals';
import type { Serving } from './serving';

const PER_MINUTE = 60;
const principal = { keyId: 'key', models: null, keyLimits: { requestsPerMinute: PER_MINUTE } };

/** A pipeline in which every Idempotency-Key is used. `repeat` answers, or throws what the request gets. */
function pipelineOf(repeat: () => string) {
  const asked = { recalls: 0, codes: [] as string[] };
  const keyed = { recall: () => Promise.resolve(++asked.recalls > 0) };
  const serving = { keyOf: () => keyed, repeat: async () => Promise.resolve().then(repeat) };
  const catalog = {} as Catalog;
  const intake = new Intake(
    {} as Admitter,
    catalog,
    new BodyMemory(),
    new WastedRequests(),
    new RefusedKeys(),
    {} as BodyReader,
  );
  const authentication = { authenticate: () => Promise.resolve(principal) };
  const client = {
    traced: null,
    awaitBody: () => {},
    setLimits: () => {},
    afterLastByte: () => {},
    refuse: ({ code }: InferenceError) => void asked.codes.push(code),
  };
  const pipeline = new Pipeline(
    authentication as unknown as Authentication,
    catalog,
    intake,
    {} as Admitter,
    serving as unknown as Serving,
    {} as Settlements,
  );
  return {
    asked,
    ask: () => {
      const headers = { 'content-type': 'application/json', 'content-length': '2' };
      const request = Object.assign(Readable.from([Buffer.from('{}')]), { headers }) as unknown as IncomingMessage;
      return pipeline.infer('chat', request, client as unknown as Client);
    },
  };
}

describe('a used Idempotency-Key', () => {
  // The limit of wasted requests refills with the time.
  beforeAll(() => void jest.spyOn(Date, 'now').mockReturnValue(Date.parse('2026-11-23T12:00:00Z')));
  afterAll(() => jest.restoreAllMocks());

  const throwing = (error: InferenceError) => () => {
    throw error;
  };

  it.each([
    ['with another body', throwing(new InferenceError('idempotency_mismatch'))],
    ['without a kept answer', throwing(new InferenceError('idempotency_answer_not_stored'))],
    ['with a kept answer', () => 'model'],
  ])('%s is looked up in the store only as often as a key may waste requests', async (_, repeat) => {
    const { asked, ask } = pipelineOf(repeat);
    for (let i = 0; i < PER_MINUTE; i++) await ask();
    expect(asked.codes).not.toContain('requests_limit_exceeded');
    for (let i = 0; i < 3; i++) await ask();
    expect(asked.codes.slice(-3)).toEqual(Array.from({ length: 3 }, () => 'requests_limit_exceeded'));
    expect(asked.recalls).toBe(PER_MINUTE);
  });

  it('whose first request runs may be sent again without end: the client waits', async () => {
    const { asked, ask } = pipelineOf(throwing(inProgress(0)));
    for (let i = 0; i < 2 * PER_MINUTE; i++) await ask();
    expect(new Set(asked.codes)).toEqual(new Set(['idempotency_in_progress']));
  });
});
