import { randomBytes } from 'node:crypto';
import { gunzipSync, gzipSync } from 'node:zlib';
import { CompressionCodecs, CompressionTypes } from 'kafkajs';
import { createKafka, Sockets } from './connection';
import { gzipCodec, MAX_BATCH_BYTES } from './gzip';

const KIB = 1024;
const text = (bytes: number) => Buffer.from('{"tenantId":"ten_1","n":'.repeat(bytes / 24 + 1)).subarray(0, bytes);
const BODIES: [string, Buffer][] = [
  ['nothing', Buffer.alloc(0)],
  ['a message', text(600)],
  ['a batch', text(60 * KIB)],
  ['a large batch', text(900 * KIB)],
  ['bytes without repetition', randomBytes(200 * KIB)],
];

test('kafkajs compresses and decompresses with this codec', () => {
  createKafka({ brokers: ['127.0.0.1:1'], clientId: 'test' }, new Sockets());
  expect(CompressionCodecs[CompressionTypes.GZIP]()).toBe(gzipCodec);
});

test.each(BODIES)('%s is compressed to gzip that everybody reads, and is read from anybody', async (_, body) => {
  expect(gunzipSync(await gzipCodec.compress({ buffer: body })).equals(body)).toBe(true);
  expect((await gzipCodec.decompress(gzipSync(body))).equals(body)).toBe(true);
});

test('a small text that becomes large is decompressed, too', async () => {
  const large = Buffer.alloc(MAX_BATCH_BYTES);
  const small = gzipSync(large);
  expect(small.length).toBeLessThan(64 * KIB);
  expect((await gzipCodec.decompress(small)).equals(large)).toBe(true);
});

test.each([
  ['small', Buffer.alloc(MAX_BATCH_BYTES + 1)],
  ['large', Buffer.concat([randomBytes(100 * KIB), Buffer.alloc(MAX_BATCH_BYTES)])],
])('a %s batch that becomes larger than any of this system is refused', async (_, body) => {
  await expect(gzipCodec.decompress(gzipSync(body))).rejects.toThrow('more than 9437184 bytes when decompressed');
});

test('data that is not gzip is refused at any size', async () => {
  for (const bytes of [100, 200 * KIB]) await expect(gzipCodec.decompress(text(bytes))).rejects.toThrow(/header/);
});
