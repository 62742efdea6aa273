import {
  CredentialMemory,
  MAX_HASHES_PER_READ,
  MAX_RECORDS_IN_MEMORY,
  MAX_AGE_MS,
  MAX_WAITING_LOOKUPS,
  type ReadRecords,
} from './credential-memory';
import type { CredentialRecord } from './credential-store';
import { aRecord } from './record.fixture';

/** A memory over a plain map. Each read waits until the test releases it. */
function setUp(stored: CredentialRecord[] = []) {
  const store = new Map(stored.map((record) => [record.hash, record]));
  const reads: { hashes: string[]; answer(): void; fail(error: Error): void }[] = [];
  const read: ReadRecords = (hashes) =>
    new Promise((resolve, reject) => {
      const found = hashes.flatMap((hash) => store.get(hash) ?? []);
      reads.push({ hashes, answer: () => resolve(found), fail: reject });
    });
  const memory = new CredentialMemory(read);
  memory.upTo(Infinity);
  return { store, reads, memory };
}
const turn = () => new Promise((resolve) => setImmediate(resolve));

describe('the memory of credentials', () => {
  it('asks once for all misses of a turn, and once for all callers with the same value', async () => {
    const [a, b] = [aRecord(), aRecord()];
    const { memory, reads } = setUp([a, b]);
    const answers = Promise.all([memory.lookup(a.hash), memory.lookup(b.hash), memory.lookup(a.hash)]);
    await turn();
    expect(reads.map((read) => read.hashes)).toEqual([[a.hash, b.hash]]);
    const later = memory.lookup(a.hash);
    reads[0]!.answer();
    expect(await answers).toEqual([a, b, a]);
    expect(await later).toEqual(a);
    expect(reads).toHaveLength(1);
    expect(memory.lookup(a.hash)).toBe(a);
  });

  it('has one read in progress at a time, of a bounded size, and a bounded number of waiting look-ups', async () => {
    const { memory, reads } = setUp();
    const answers = Array.from({ length: MAX_WAITING_LOOKUPS }, (_, i) => memory.lookup(`unknown-${i}`));
    await expect(memory.lookup('one-more')).rejects.toThrow(/too many look-ups/);
    await turn();
    for (let done = 0; done < MAX_WAITING_LOOKUPS / MAX_HASHES_PER_READ; done++) {
      expect(reads).toHaveLength(done + 1);
      expect(reads[done]!.hashes).toHaveLength(MAX_HASHES_PER_READ);
      reads[done]!.answer();
      await turn();
    }
    expect(new Set(await Promise.all(answers))).toEqual(new Set([null]));
    expect(memory.size).toBe(0);
  });

  it('returns a change that arrived during a read, and not the older record of the read', async () => {
    const record = aRecord();
    const { memory, reads } = setUp([record]);
    const answer = memory.lookup(record.hash);
    await turn();
    const revoked = { ...record, revokedAtMs: 1, version: 2 };
    memory.apply([revoked]);
    reads[0]!.answer();
    expect(await answer).toEqual(revoked);
    expect(memory.lookup(record.hash)).toEqual(revoked);
  });

  it('returns its own record, and not an older one of a store that lost its last writes', async () => {
    const record = aRecord();
    const { memory, reads } = setUp([record]);
    const first = memory.lookup(record.hash);
    await turn();
    reads[0]!.answer();
    await first;
    const revoked = { ...record, version: record.version + 1, revokedAtMs: Date.now() };
    memory.apply([revoked]);
    memory.upTo(-Infinity);
    const again = memory.lookup(record.hash);
    await turn();
    reads[1]!.answer();
    expect(await again).toEqual(revoked);
    memory.upTo(Infinity);
    expect(memory.lookup(record.hash)).toEqual(revoked);
  });

  it('does not remember what was read from a store that was replaced meanwhile', async () => {
    const record = aRecord();
    const { memory, reads } = setUp([record]);
    const answer = memory.lookup(record.hash);
    await turn();
    memory.forgetAll();
    reads[0]!.answer();
    await answer;
    expect(memory.size).toBe(0);
  });

  it('refuses all waiting look-ups when a read fails, and asks again for the next', async () => {
    const record = aRecord();
    const { memory, reads } = setUp([record]);
    const first = memory.lookup(record.hash);
    await turn();
    const behind = memory.lookup('behind');
    reads[0]!.fail(new Error('gone'));
    await expect(first).rejects.toThrow(/does not answer: gone/);
    await expect(behind).rejects.toThrow(/does not answer: gone/);
    const again = memory.lookup(record.hash);
    await turn();
    reads[1]!.answer();
    expect(await again).toEqual(record);
  });

  it('keeps a bounded number of records and drops the one used longest ago', async () => {
    const records = Array.from({ length: MAX_RECORDS_IN_MEMORY + 1 }, () => aRecord());
    const memory = new CredentialMemory((hashes) => Promise.resolve(hashes.map((hash) => byHash.get(hash)!)));
    memory.upTo(Infinity);
    const byHash = new Map(records.map((record) => [record.hash, record]));
    for (let i = 0; i < records.length; i += MAX_WAITING_LOOKUPS) {
      await Promise.all(records.slice(i, i + MAX_WAITING_LOOKUPS).map((record) => memory.lookup(record.hash)));
    }
    expect(memory.size).toBe(MAX_RECORDS_IN_MEMORY);
    expect(memory.lookup(records[0]!.hash)).toBeInstanceOf(Promise);
    expect(memory.lookup(records[1]!.hash)).toBe(records[1]);
  });

  it('asks the store even for known records when it has not been checked against the store for long', async () => {
    const record = aRecord();
    const { memory, reads, store } = setUp([record]);
    const first = memory.lookup(record.hash);
    await turn();
    reads[0]!.answer();
    expect(await first).toEqual(record);
    expect(memory.lookup(record.hash)).toBe(record);

    memory.upTo(performance.now() - MAX_AGE_MS - 1);
    store.set(record.hash, { ...record, revokedAtMs: 1, version: 2 });
    const second = memory.lookup(record.hash);
    await turn();
    reads[1]!.answer();
    expect(await second).toMatchObject({ version: 2 });
    const third = memory.lookup(record.hash);
    await turn();
    reads[2]!.fail(new Error('away'));
    await expect(third).rejects.toThrow(/does not answer: away/);

    memory.upTo(performance.now());
    expect(memory.lookup(record.hash)).toMatchObject({ version: 2 });
  });
});
