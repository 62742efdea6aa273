import fs from 'node:fs';
import { TOPICS } from '@tollgate/contracts';
import { metrics } from '@tollgate/runtime';
import type { EachBatchPayload, KafkaMessage } from 'kafkajs';
import type { KafkaConnection } from '../client/connection';
import { GroupConsumer } from '../consume/group-consumer';
import type { Publisher } from '../publish/publisher';
import { RequestServer } from '../requests/request-server';
import type { Signatures } from './signatures';
import { Names } from '../admin/topic-plan';

const FORGED = 3_000;
const MOST_LINES = 20;
const TUNING = { sessionTimeoutMs: 6_000, concurrentPartitions: 1 };
const connection = {} as KafkaConnection;
const names = new Names('flood.');
const signatures = { verify: () => ({ reason: 'not signed for billing' }) } as unknown as Signatures;
const messages = Array.from({ length: FORGED }, (_, n) => ({
  offset: String(n),
  value: Buffer.from('{}'),
})) as KafkaMessage[];

/** The log lines of this process meanwhile. */
async function loggedBy(work: () => Promise<void>): Promise<string[]> {
  const lines: string[] = [];
  const real = fs.writeSync as (fd: number, text: string) => number;
  const spy = jest.spyOn(fs, 'writeSync').mockImplementation((fd: number, text: string) => {
    if (fd !== 2) return real(fd, text);
    lines.push(text);
    return Buffer.byteLength(text);
  });
  await work().finally(() => spy.mockRestore());
  return lines;
}

async function forged(topic: string): Promise<number> {
  const { values } = await metrics.getSingleMetric('tollgate_messages_forged_total')!.get();
  return values.find(({ labels }) => labels['topic'] === topic)?.value ?? 0;
}

it('a flood of forged messages is fully counted and quarantined, and logs at most twenty lines', async () => {
  let aside = 0;
  const send = async ({ messages: sent }: { messages: unknown[] }) => void (aside += sent.length);
  const consumed = {
    ...{ topic: 'charges' as const, group: 'billing', definition: TOPICS.charges, service: 'billing' as const },
    ...{ handler: async () => {}, validate: undefined },
  };
  const consumer = new GroupConsumer(connection, consumed, names, { send } as unknown as Publisher, signatures, TUNING);
  const payload = {
    batch: { topic: names.topic('charges'), partition: 0, messages, offsetLag: () => '0' },
    ...{ resolveOffset: () => {}, heartbeat: async () => {}, commitOffsetsIfNecessary: async () => {} },
    ...{ isRunning: () => true, pause: () => () => {} },
  } as unknown as EachBatchPayload;
  const lines = await loggedBy(() => consumer['take'](payload));
  expect([await forged('charges'), aside]).toEqual([FORGED, FORGED]);
  expect(lines).toHaveLength(MOST_LINES);
  expect(lines[0]).toContain('not signed for billing');
});

it('a flood of forged requests is fully counted, and logs at most twenty lines', async () => {
  const answering = { service: 'billing' as const, handlers: new Map() };
  const server = new RequestServer(connection, answering, names, {} as Publisher, signatures, TUNING);
  const lines = await loggedBy(async () => {
    for (const message of messages) await server['take'](message, 0, async () => {});
  });
  expect(await forged('requests.billing')).toBe(FORGED);
  expect(lines).toHaveLength(MOST_LINES);
});
