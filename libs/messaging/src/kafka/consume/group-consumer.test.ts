import { TOPICS } from '@tollgate/contracts';
import { delayUntilAborted } from '@tollgate/runtime';
import type { EachBatchPayload, KafkaMessage } from 'kafkajs';
import { failedBatches } from '../../message-metrics';
import type { KafkaConnection } from '../client/connection';
import { GroupConsumer } from './group-consumer';
import type { Publisher } from '../publish/publisher';
import type { Signatures } from '../sign/signatures';
import { Names } from '../admin/topic-plan';

jest.mock('@tollgate/runtime', () => ({
  ...jest.requireActual<typeof import('@tollgate/runtime')>('@tollgate/runtime'),
  delayUntilAborted: jest.fn(async (forMs: number) => jest.advanceTimersByTime(forMs)),
}));

const FETCH_INTERVAL_MS = 100;
const names = new Names('waits.');
const signatures = { verify: () => ({ reason: 'not signed for billing' }) } as unknown as Signatures;

beforeEach(() => jest.useFakeTimers());
afterEach(() => jest.useRealTimers());

function consumer(): GroupConsumer {
  const consumed = {
    ...{ topic: 'charges' as const, group: 'billing', definition: TOPICS.charges, service: 'billing' as const },
    ...{ handler: async () => {}, validate: undefined },
  };
  const publisher = { send: async () => {} } as unknown as Publisher;
  const tuning = { sessionTimeoutMs: 6_000, concurrentPartitions: 1 };
  return new GroupConsumer({} as KafkaConnection, consumed, names, publisher, signatures, tuning);
}

function payload(partition: number, lag: string): EachBatchPayload {
  const messages = [{ offset: '0', value: Buffer.from('{}') }] as KafkaMessage[];
  return {
    batch: { topic: names.topic('charges'), partition, messages, offsetLag: () => lag },
    ...{ resolveOffset: () => {}, heartbeat: async () => {}, commitOffsetsIfNecessary: async () => {} },
    ...{ isRunning: () => true, pause: () => () => {} },
  } as unknown as EachBatchPayload;
}

/** The waits after the batches of one fetch, which are handled one after the other without taking any time. */
async function waitsOf(lag: string): Promise<number[]> {
  jest.mocked(delayUntilAborted).mockClear();
  const group = consumer();
  group['consumer']['settings'].onFetch!();
  for (const partition of [0, 1, 2]) await group['take'](payload(partition, lag));
  return jest.mocked(delayUntilAborted).mock.calls.map(([forMs]) => forMs);
}

it('the partitions of a fetch wait for the next one together, not one after the other', async () => {
  expect(await waitsOf('0')).toEqual([FETCH_INTERVAL_MS]);
});

it('a fetch that left messages at the broker is followed by the next one at once', async () => {
  expect(await waitsOf('1')).toEqual([]);
});

it('a stop ends the wait', async () => {
  jest.mocked(delayUntilAborted).mockClear();
  const group = consumer();
  group['consumer']['settings'].onFetch!();
  await group['take'](payload(0, '0'));
  await group.stop();
  expect(jest.mocked(delayUntilAborted).mock.calls[0]![1].aborted).toBe(true);
});

it('a batch that cannot be decoded counts as one that failed', async () => {
  const count = async () => (await failedBatches.get()).values.find(({ labels }) => labels.topic === 'charges')?.value;
  const before = (await count()) ?? 0;
  consumer()['consumer']['settings'].onUndecoded!();
  expect(await count()).toBe(before + 1);
});
