import { randomBytes } from 'node:crypto';
import { newId } from '@tollgate/contracts';
import { Partitioners, type PartitionerArgs } from 'kafkajs';
import { createRememberingPartitioner, MAX_REMEMBERED_KEYS } from './partitioner';

const KEYS = 10_000;
const metadata = (partitions: number) =>
  Array.from({ length: partitions }, (_, partitionId) => ({ partitionId, leader: 1 })) as never;
const args = (key: Buffer | string | null, partitions: number, partition?: number): PartitionerArgs => ({
  topic: 'charges',
  partitionMetadata: metadata(partitions),
  message: { key, value: null, ...(partition !== undefined && { partition }) },
});

test('each of 10,000 keys has the partition of kafkajs: at first, when remembered, and after the topic grew', () => {
  const ours = createRememberingPartitioner();
  const theirs = Partitioners.DefaultPartitioner();
  const texts = ['', 'a', 'Müller', '日本', '\u{1f600}', ...Array.from({ length: 20 }, (_, n) => 'x'.repeat(n))];
  const random = Array.from({ length: 1_000 }, () => randomBytes(12).toString('base64'));
  const ids = Array.from({ length: KEYS - texts.length - random.length }, () => newId('ten'));
  const keys = [...texts, ...random, ...ids];
  // An `expect` for each key would take longer than all the hashes.
  for (const partitions of [12, 12, 13, 1]) {
    const isMoved = (key: string) => ours(args(key, partitions)) !== theirs(args(key, partitions));
    expect(keys.filter(isMoved)).toEqual([]);
  }
});

test('a message with a partition of its own has that one, whether its key is remembered or not', () => {
  const ours = createRememberingPartitioner();
  expect(ours(args('a', 12, 5))).toBe(5);
  const byKey = ours(args('a', 12));
  expect(byKey).toBe(Partitioners.DefaultPartitioner()(args('a', 12)));
  for (const partition of [0, 5, 11]) expect(ours(args('a', 12, partition))).toBe(partition);
  expect(ours(args(null, 12, 7))).toBe(7);
  expect(ours(args(Buffer.from('a'), 12))).toBe(byKey);
});

test('more keys than are remembered keep their partitions', () => {
  const ours = createRememberingPartitioner();
  const keys = Array.from({ length: MAX_REMEMBERED_KEYS + 100 }, (_, n) => `ten_${n}`);
  const first = keys.map((key) => ours(args(key, 12)));
  expect(keys.filter((key, n) => ours(args(key, 12)) !== first[n])).toEqual([]);
});
