import { metrics } from '@tollgate/runtime';
import { eventually } from '@tollgate/testing';
import type { ServerResponse } from 'node:http';
import { BodyMemory } from '../../admit/body-memory';
import {
  askedOf,
  backend,
  closeAll,
  type CountingBackend,
  exchangeWith,
  upstreamWith,
  useJumpingClock,
} from '../../upstream/exchange.fixture';
import { type OpenMemory, PlainRelay, type ReadAnswer } from '../../upstream/exchange/plain-answer';

const KIB = 1024;
/** More than all buffers between a backend and a relay that does not read. */
const LARGE = Buffer.alloc(24_000 * KIB, 'x');
const SMALL = Buffer.alloc(100 * KIB, 'x');
const IDLE_MS = 2_000;
const upstream = upstreamWith({ timeoutMs: IDLE_MS, connectTimeoutMs: 10_000 });
const HOUR_MS = 3_600_000;
const MAX_WAIT_MS = 120_000;
const BUSY = { kind: 'failed', failure: { kind: 'busy', retryAfterSeconds: null } };
let memory: BodyMemory;
beforeEach(() => (memory = new BodyMemory({ arriving: { perTenant: 1_000 * KIB, all: 3_000 * KIB } })));
// Every share is released in the end, however its answer ended.
afterEach(() => eventually(() => expect(used()).toBe(0)));
afterAll(closeAll);

const ownerIn = (tenantId: string) => ({ keyId: `key of ${tenantId}`, tenantId });

/** Bytes in shares of the tenant, to the next KiB. */
function used(tenantId = 'ten'): number {
  const owner = ownerIn(tenantId);
  let free = memory.arriving.memory.limits.perTenant;
  while (free > -100_000 * KIB && memory.arriving.memory.fullFor(owner, free) !== null) free -= KIB;
  return memory.arriving.memory.limits.perTenant - free;
}

const whole: ReadAnswer<number> = ({ length }) => Promise.resolve({ kind: 'usable', answer: length });
const sends = (bytes: Buffer) => backend((_, response) => void response.end(bytes));

function run(backends: CountingBackend[], { tenant = 'ten', read = whole, maxBytes = 96_000 * KIB } = {}) {
  const open: OpenMemory = (resume) => memory.arriving.open(ownerIn(tenant), resume);
  const relay = new PlainRelay<number>(read, open, maxBytes);
  const state = { relay, ended: false, answer: relay.run(exchangeWith(relay, backends, upstream)) };
  const end = () => void (state.ended = true);
  state.answer.then(end, end);
  return state;
}

/** Its share stays, as the owner did not release it. */
async function blocked() {
  const first = run([await sends(LARGE)]);
  expect(await first.answer).toEqual({ kind: 'answer', answer: LARGE.length });
  expect(used()).toBe(LARGE.length);
  return first;
}

const paused = (before: number) => eventually(() => expect(used()).toBeGreaterThan(before));

describe('a large answer', () => {
  const jump = useJumpingClock();

  it('waits at its backend for memory of its tenant, longer than a backend may be silent', async () => {
    const first = await blocked();
    let sent: ServerResponse | undefined;
    const slow = await backend((_, response) => void (sent = response).end(LARGE));
    const second = run([slow]);
    await paused(LARGE.length);
    await new Promise((resolve) => setTimeout(resolve, 2 * IDLE_MS));
    // Backpressure reaches the backend.
    expect([second.ended, sent!.writableFinished]).toEqual([false, false]);
    expect(used()).toBeLessThan(LARGE.length + LARGE.length / 4);
    first.relay.release();
    expect(await second.answer).toEqual({ kind: 'answer', answer: LARGE.length });
    first.relay.release();
    expect(used()).toBe(LARGE.length);
    second.relay.release();
  });

  it('does not delay small answers, nor those of other tenants', async () => {
    const first = await blocked();
    const small = run([await sends(SMALL)]);
    const other = run([await sends(LARGE)], { tenant: 'other' });
    expect(await small.answer).toEqual({ kind: 'answer', answer: SMALL.length });
    expect(await other.answer).toEqual({ kind: 'answer', answer: LARGE.length });
    first.relay.release();
    other.relay.release();
    expect(used('other')).toBe(0);
  });

  it.each<[string, (relay: PlainRelay<number>) => void, string]>([
    ['its client leaves', (relay) => relay.clientClosed(), 'client_closed'],
    ['its hold is lost', (relay) => relay.holdLost(), 'hold_lost'],
    ['the process stops', (relay) => relay.cutOff(), 'failed'],
  ])('has no memory any more once %s while it waits', async (_, go, kind) => {
    const first = await blocked();
    const second = run([await sends(LARGE)]);
    await paused(LARGE.length);
    go(second.relay);
    expect((await second.answer).kind).toBe(kind);
    expect(used()).toBe(LARGE.length);
    first.relay.release();
  });

  it('has no memory any more once its backend breaks off, and begins again at another one', async () => {
    let sent: ServerResponse | undefined;
    const breaks = await backend((_, response) => {
      (sent = response).writeHead(200, { 'content-length': LARGE.length });
      response.write(SMALL);
      response.write(SMALL);
    });
    const good = await sends(SMALL);
    const one = run([breaks, { ...good, weight: 1e-9 }]);
    await paused(SMALL.length);
    sent!.destroy();
    expect(await one.answer).toEqual({ kind: 'answer', answer: SMALL.length });
  });

  it('has no memory any more if it is too long', async () => {
    const one = run([await sends(LARGE)], { maxBytes: 200 * KIB });
    expect((await one.answer).kind).toBe('failed');
  });

  it('keeps its memory while a worker has its bytes, also if its client has gone', async () => {
    let end: () => void = () => {};
    const read: ReadAnswer<number> = () =>
      new Promise((resolve) => (end = () => resolve({ kind: 'unusable', reason: 'nonsense' })));
    const one = run([await sends(LARGE)], { read });
    await eventually(() => expect(used()).toBe(LARGE.length));
    one.relay.clientClosed();
    expect([(await one.answer).kind, used()]).toEqual(['client_closed', LARGE.length]);
    end();
  });

  it.each([
    ['cannot be used', () => Promise.resolve({ kind: 'unusable', reason: 'nonsense' } as const)],
    ['nobody had time for', () => Promise.resolve({ kind: 'unread' } as const)],
  ])('that %s has no memory any more', async (_, read) => {
    expect((await run([await sends(LARGE)], { read }).answer).kind).toBe('failed');
  });

  it('has no memory any more after a bug', async () => {
    const one = run([await sends(LARGE)], { read: () => Promise.reject(new Error('a bug')) });
    await expect(one.answer).rejects.toThrow('a bug');
  });

  it('that is late because it waited is no failure of its backend', async () => {
    const first = await blocked();
    const one = await sends(LARGE);
    const second = run([one]);
    await paused(LARGE.length);
    jump(HOUR_MS);
    first.relay.release();
    expect(await second.answer).toEqual({ kind: 'failed', failure: { kind: 'timeout' } });
    const { values } = await metrics.getSingleMetric('tollgate_backend_calls_total')!.get();
    const results = values.filter(({ labels, value }) => labels['backend'] === one.name && value > 0);
    expect(results.map(({ labels }) => labels['result'])).not.toContain('failed');
  });

  it.each([
    ['with 503 after two minutes', 0, BUSY],
    ['with 504 if the time for all attempts is over', HOUR_MS, { kind: 'failed', failure: { kind: 'timeout' } }],
  ])('that gets no memory ends %s, and no other backend is asked', async (_, jumpMs, expected) => {
    const first = await blocked();
    const timers = jest.spyOn(global, 'setTimeout');
    const backends = [await sends(LARGE), await sends(LARGE)];
    const second = run(backends.map((one) => ({ ...one, timeouts: { totalMs: HOUR_MS } })));
    await paused(LARGE.length);
    const [giveUp] = timers.mock.calls.findLast(([, ms]) => ms === MAX_WAIT_MS)!;
    timers.mockRestore();
    if (jumpMs > 0) jump(jumpMs);
    giveUp();
    expect(await second.answer).toEqual(expected);
    expect(askedOf(backends)).toBe(1);
    first.relay.release();
  });
});
