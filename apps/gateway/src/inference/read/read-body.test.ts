import type { IncomingMessage } from 'node:http';
import { PassThrough } from 'node:stream';
import { BodyMemory } from '../../admit/body-memory';
import { InferenceError } from '../../inference-errors';
import { announcedBytes, BODY_GRACE_MS, ClientLeftError, readBody } from './read-body';

const OWNER = { keyId: 'key', tenantId: 'tenant' };
const KIB = 1024;
const MIB = 1024 * KIB;

/** A body that the test sends, with a clock that only the test advances. */
function reading(announced: number | null, maxBytesPerBody?: number) {
  const stream = new PassThrough();
  const request = Object.assign(stream, { complete: false, headers: {} }) as unknown as IncomingMessage;
  stream.once('end', () => Object.assign(request, { complete: true }));
  const share = new BodyMemory({ maxBytesPerBody }).open(OWNER);
  const full = () => new InferenceError('overloaded_error');
  const outcome = readBody(request, announced, share, full).then(
    (bytes) => bytes.toString(),
    (error: Error) => (error instanceof InferenceError ? error.code : error.constructor.name),
  );
  return { stream, share, outcome };
}

/** Waits until the written bytes are read. */
const turn = () => new Promise(process.nextTick);

describe('the time of a body', () => {
  beforeEach(() => jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate'] }));
  afterEach(() => jest.useRealTimers());

  it('ends after the grace period if nothing arrives', async () => {
    const { stream, outcome } = reading(100);
    jest.advanceTimersByTime(BODY_GRACE_MS - 1);
    expect(jest.getTimerCount()).toBe(1);
    jest.advanceTimersByTime(1);
    expect(await outcome).toBe('request_timeout');
    expect(stream.listenerCount('data')).toBe(0);
  });

  it('grows by a second for each 128 KiB that arrived, and a slower body is refused', async () => {
    const { stream, outcome } = reading(null);
    stream.write(Buffer.alloc(256 * KIB));
    await turn();
    jest.advanceTimersByTime(BODY_GRACE_MS + 1_999);
    expect(jest.getTimerCount()).toBe(1);
    jest.advanceTimersByTime(1);
    expect(await outcome).toBe('request_timeout');
  });

  it('is enough for a body of any length that arrives fast enough', async () => {
    const { stream, share, outcome } = reading(null);
    for (let second = 0; second < 80; second++) {
      stream.write(Buffer.alloc(128 * KIB, 'x'));
      await turn();
      jest.advanceTimersByTime(1_000);
    }
    stream.end();
    expect((await outcome).length).toBe(80 * 128 * KIB);
    expect(share.bytes).toBe(80 * 128 * KIB);
    expect(jest.getTimerCount()).toBe(0);
  });
});

it('a client that left before its body was read is noticed', async () => {
  const stream = new PassThrough();
  stream.destroy();
  const request = Object.assign(stream, { complete: false, headers: {} }) as unknown as IncomingMessage;
  await expect(
    readBody(request, 10, new BodyMemory().open(OWNER), () => new InferenceError('api_error')),
  ).rejects.toBeInstanceOf(ClientLeftError);
});

it.each([
  [undefined, 10],
  [3 * MIB, 3],
  [20 * MIB, 20],
])('a body above the limit of %j is refused at %i MiB, and no more of it is read', async (limit, mib) => {
  const { stream, outcome, share } = reading(null, limit);
  for (let sent = 0; sent <= mib; sent++) stream.write(Buffer.alloc(MIB));
  expect(await outcome).toBe('payload_too_large');
  expect(share.bytes).toBeLessThanOrEqual(mib * MIB);
  const headers = { 'content-type': 'application/json', 'content-length': String(mib * MIB + 1) };
  expect(() => announcedBytes({ headers } as IncomingMessage, share.maxBytes)).toThrow(
    `The body is larger than the limit of ${mib} MiB. Send a smaller one.`,
  );
  const whole = reading(null, limit);
  for (let sent = 0; sent < mib; sent++) whole.stream.write(Buffer.alloc(MIB));
  whole.stream.end();
  expect((await whole.outcome).length).toBe(mib * MIB);
});
