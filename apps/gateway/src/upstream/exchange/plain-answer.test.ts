import { eventually } from '@tollgate/testing';
import {
  type Answer,
  askedOf,
  backend,
  closeAll,
  exchangeWith,
  UNLIMITED,
  upstreamWith,
  useJumpingClock,
} from '../exchange.fixture';
import { PlainRelay, type ReadResult, type ReadUntil } from './plain-answer';

const upstream = upstreamWith({});
const well: Answer = (_, response) => void response.end('yes');
const USABLE: ReadResult<string> = { kind: 'usable', answer: 'yes' };
const HOUR_MS = 3_600_000;
afterAll(closeAll);

/** A relay whose answers are read when the test says so, as in a busy worker. */
async function reading() {
  const backends = [await backend(well), await backend(well)];
  const reads: { until: ReadUntil; end: (read: ReadResult<string>) => void; fail: (error: Error) => void }[] = [];
  const relay = new PlainRelay<string>(
    (_, until) => new Promise((resolve, reject) => reads.push({ until, end: resolve, fail: reject })),
    UNLIMITED,
  );
  const answer = relay.run(exchangeWith(relay, backends, upstream));
  const next = (count: number) =>
    eventually(() => {
      expect(reads).toHaveLength(count);
      return reads[count - 1]!;
    });
  return { relay, answer, first: await next(1), next, asked: () => askedOf(backends) };
}

describe('a plain answer that takes time to read', () => {
  const jump = useJumpingClock();

  it('is complete once it is read', async () => {
    const { answer, first, asked } = await reading();
    expect(first.until.isGone()).toBe(false);
    first.end(USABLE);
    expect(await answer).toEqual({ kind: 'answer', answer: 'yes' });
    expect(asked()).toBe(1);
  });

  it('leads to another backend if it cannot be used', async () => {
    const { answer, first, next, asked } = await reading();
    first.end({ kind: 'unusable', reason: 'nonsense' });
    (await next(2)).end(USABLE);
    expect(await answer).toEqual({ kind: 'answer', answer: 'yes' });
    expect(asked()).toBe(2);
  });

  it.each<[string, (relay: PlainRelay<string>) => void, object]>([
    ['client', (relay) => relay.clientClosed(), { kind: 'client_closed' }],
    ['hold', (relay) => relay.holdLost(), { kind: 'hold_lost' }],
    ['process', (relay) => relay.cutOff(), { kind: 'failed', failure: { kind: 'stopped' } }],
  ])('is not waited for when its %s has gone', async (_, go, expected) => {
    for (const read of [USABLE, { kind: 'unusable', reason: 'nonsense' }, { kind: 'unread' }] as const) {
      const { relay, answer, first, asked } = await reading();
      go(relay);
      expect(await answer).toEqual(expected);
      expect(first.until.isGone()).toBe(true);
      first.end(read);
      await new Promise(setImmediate);
      expect(asked()).toBe(1);
    }
  });

  it('that nobody had time to read is worth a retry by the client, and no other backend is asked', async () => {
    const { answer, first, asked } = await reading();
    first.end({ kind: 'unread' });
    expect(await answer).toEqual({ kind: 'failed', failure: { kind: 'busy', retryAfterSeconds: null } });
    expect(asked()).toBe(1);
  });

  it('has no longer than its request has for all attempts', async () => {
    const { answer, first } = await reading();
    jump(HOUR_MS);
    expect(performance.now()).toBeGreaterThan(first.until.endsAtMs);
    first.end({ kind: 'unread' });
    expect(await answer).toEqual({ kind: 'failed', failure: { kind: 'timeout' } });
  });

  it('passes a bug on', async () => {
    const { answer, first } = await reading();
    first.fail(new Error('a bug'));
    await expect(answer).rejects.toThrow('a bug');
  });
});
