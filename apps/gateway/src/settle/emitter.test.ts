import { newId, UnavailableError, type UsageEvent } from '@tollgate/contracts';
import { PostgresMessages } from '@tollgate/messaging';
import { metrics } from '@tollgate/runtime';
import { eventually, useTestDatabase } from '@tollgate/testing';
import { UsageEmitter } from './emitter';

const database = useTestDatabase();
let messages: PostgresMessages;

beforeEach(() => {
  messages = new PostgresMessages({ url: database.url, applicationName: 'emitter-test' });
});
afterEach(() => messages.close());

describe('usage while messages are unavailable', () => {
  it('is published completely and in order when messages are available', async () => {
    const taken: UsageEvent[] = [];
    messages.consume('usage-events', 'metering', async (events) => void taken.push(...events));
    const emitter = new UsageEmitter(messages);
    // Not started yet, so every publication fails until it is.
    const events = Array.from({ length: 1_200 }, () => usageEvent());
    for (const event of events.slice(0, 700)) emitter.emit(event);
    const failed = jest.spyOn(messages, 'publish');
    await eventually(() => expect(failed.mock.results.length).toBeGreaterThan(1));
    for (const event of events.slice(700)) emitter.emit(event);
    await messages.start();
    await eventually(() => expect(taken.length).toBe(events.length));
    expect(taken.map(({ id }) => id)).toEqual(events.map(({ id }) => id));
    await emitter.flush();
    await messages.stopConsuming();
  });

  it('is left to the sweeper at the end of the process, after one more try', async () => {
    const leftBefore = await leftToSweeper();
    const emitter = new UsageEmitter(messages);
    const failed = jest.spyOn(messages, 'publish');
    for (let count = 0; count < 1_200; count++) emitter.emit(usageEvent());
    await eventually(() => expect(failed).toHaveBeenCalled());
    const before = failed.mock.calls.length;
    await emitter.flush();
    expect(failed).toHaveBeenCalledTimes(before + 1);
    expect((await leftToSweeper()) - leftBefore).toBe(1_200);
  });

  it('delays a client for at most a few seconds when messages do not answer', async () => {
    jest.useFakeTimers();
    try {
      jest.spyOn(messages, 'publish').mockReturnValue(new Promise(() => {}));
      const published = new UsageEmitter(messages).publish(usageEvent());
      const refused = expect(published).rejects.toBeInstanceOf(UnavailableError);
      await jest.advanceTimersByTimeAsync(4_000);
      await refused;
    } finally {
      jest.useRealTimers();
    }
  });

  it('does not block on an event that can never be published', async () => {
    const taken: string[] = [];
    messages.consume('usage-events', 'metering', async (events) => void taken.push(...events.map(({ id }) => id)));
    await messages.start();
    const before = await leftToSweeper();
    const emitter = new UsageEmitter(messages);
    emitter.emit(usageEvent({ model: 'not\u0000storable' }));
    await eventually(async () => expect((await leftToSweeper()) - before).toBe(1));
    const good = usageEvent();
    emitter.emit(good);
    await emitter.flush();
    await eventually(() => expect(taken).toContain(good.id));
    await messages.stopConsuming();
  });
});

async function leftToSweeper(): Promise<number> {
  const metric = await metrics.getSingleMetric('tollgate_usage_events_left_to_sweeper_total')!.get();
  return metric.values[0]?.value ?? 0;
}

function usageEvent(changes: Partial<UsageEvent> = {}): UsageEvent {
  const at = new Date().toISOString();
  return {
    id: newId('req'),
    tenantId: 'ten_emitter',
    keyId: 'key_emitter',
    model: 'sim',
    kind: 'chat',
    stream: false,
    price: { version: 'v', inputFemtos: '1000000', cachedInputFemtos: '0', outputFemtos: '1000000', requestNanos: '0' },
    startedAt: at,
    endedAt: at,
    promptTokens: 1,
    cachedTokens: 0,
    completionTokens: 1,
    costNanos: '2',
    overrunNanos: '0',
    estimated: false,
    outcome: 'complete',
    ...changes,
  };
}
