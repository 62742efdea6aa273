import { UnavailableError, hashCredential, newId } from '@tollgate/contracts';
import { elapsedMs, eventually, inForceAfterMs, leastMs } from '@tollgate/testing';
import type { CredentialRecord, CredentialStore } from './credential-store';
import type { Link as OneLink } from './link.fixture';
import { aRecord, inMemory, lookup, put, revokedAfterMs, started } from './record.fixture';

/** The path to the backing store, however many connections it has. */
type Link = Pick<OneLink, 'breakConnections' | 'refuse' | 'hang' | 'restore' | 'close'>;

/**
 * What an implementation provides for the tests. All stores that it opens share one backing store, which is empty at
 * first.
 */
export interface CredentialsUnderTest {
  /** A store that is not started, with its own link to the backing store. */
  open(): Promise<{ store: CredentialStore; link: Link }>;
  /** From now on no process is notified of changes, until the returned function is called. */
  loseNotifications(): Promise<() => Promise<void>>;
  /** The number of records in the store's memory. */
  inMemory(store: CredentialStore): number;
}

/** In force everywhere within this time: the promise of the seam. */
const REVOCATION_LIMIT_MS = 1_000;
/** "Within about a second" on a machine that is busy with other tests. */
const REFUSAL_LIMIT_MS = 1_500;
/** A notification arrives at once, not only with the next check. */
const NOTIFIED_MEDIAN_LIMIT_MS = 100;
const ROUNDS = 8;

/** The guarantees of the credential seam, for every implementation. `makeSubject` is called once, in a `beforeAll`. */
export function credentialsSuite(
  name: string,
  makeSubject: () => Promise<CredentialsUnderTest> | CredentialsUnderTest,
): void {
  describe.each([2, 3])(`${name}, %i processes on one store`, (processes) => {
    let subject: CredentialsUnderTest;
    let opened: { store: CredentialStore; link: Link }[];
    let stores: CredentialStore[];
    let writer: CredentialStore;
    beforeAll(async () => {
      subject = await makeSubject();
    });
    beforeEach(async () => {
      opened = await Promise.all(Array.from({ length: processes }, () => started(() => subject.open())));
      stores = opened.map(({ store }) => store);
      writer = stores[0]!;
    });
    afterEach(async () => {
      await Promise.all(stores.map((store) => store.close()));
      await Promise.all(opened.map(({ link }) => link.close()));
    });

    const lookupAll = (hash: string) => Promise.all(stores.map((store) => lookup(store, hash)));
    /** The records with these hashes, at every process. Rejects when one is refused. */
    const everywhere = (hashes: readonly string[]) =>
      Promise.all(stores.map((store) => Promise.all(hashes.map((hash) => store.lookup(hash)))));
    const revoked = (record: CredentialRecord, version = record.version + 1): CredentialRecord => ({
      ...record,
      revokedAtMs: 1_800_000_000_000,
      version,
    });

    /** What a process with an empty memory finds. */
    async function lookupCold(hash: string): Promise<CredentialRecord | null> {
      const { store, link } = await started(() => subject.open());
      const found = await lookup(store, hash);
      await store.close();
      await link.close();
      return found;
    }

    /** Milliseconds from the return of `put` until the last look-up that gave the unrevoked record. */
    async function revocationMs(record: CredentialRecord, justBefore = async () => {}): Promise<number> {
      await put(writer, [record]);
      await lookupAll(record.hash);
      await justBefore();
      // A cluster's client may have to find the nodes again first.
      await eventually(() => writer.put([revoked(record)]), { everyMs: 2 });
      return revokedAfterMs(stores, record.hash);
    }

    it('returns a record as it was put, null for an unissued value, and a known record synchronously', async () => {
      const key = aRecord({ models: ['m-1', 'm-2'], expiresAtMs: 1_900_000_000_000 });
      const token = aRecord({ kind: 'token', id: newId('tok'), profile: '', scopes: ['keys:read', 'usage:read'] });
      await put(writer, [key, token]);
      expect(await lookupAll(key.hash)).toEqual(stores.map(() => key));
      expect(await lookupAll(token.hash)).toEqual(stores.map(() => token));
      expect(await lookupAll(aRecord().hash)).toEqual(stores.map(() => null));
      // Unless its last check of the store is so old that it checks again first.
      for (const store of stores) await eventually(() => expect(inMemory(store, key.hash)).toEqual(key));
    });

    it('finds a credential that was issued just after it was looked up', async () => {
      const record = aRecord();
      expect(await lookupAll(record.hash)).toEqual(stores.map(() => null));
      await put(writer, [record]);
      expect(await lookupAll(record.hash)).toEqual(stores.map(() => record));
    });

    it('never replaces a newer version by an older one: in the store, in memory, or within one put', async () => {
      const first = aRecord();
      const newest = revoked(first, 7);
      await put(writer, [first]);
      await lookupAll(first.hash);
      await put(writer, [newest, { ...first, version: 3 }]);
      await put(writer, [{ ...first, version: 6 }]);
      expect(await lookupCold(first.hash)).toEqual(newest);
      await eventually(async () => expect(await lookupAll(first.hash)).toEqual(stores.map(() => newest)));
      await Promise.all(stores.map((store) => put(store, [{ ...first, version: 5 }])));
      // When this change has reached a process, all earlier ones have too.
      await revocationMs(aRecord());
      expect(await lookupAll(first.hash)).toEqual(stores.map(() => newest));
    });

    it('counts a repeat, and the same record from all processes at once, as one', async () => {
      const record = aRecord();
      await Promise.all(stores.flatMap((store) => [put(store, [record]), put(store, [record])]));
      await put(writer, [record]);
      await put(writer, []);
      expect(await lookupAll(record.hash)).toEqual(stores.map(() => record));
    });

    it('has the newest version everywhere at the end, however the writers interleave', async () => {
      const records = Array.from({ length: 20 }, () => aRecord());
      await put(writer, records);
      await Promise.all(records.map((record) => lookupAll(record.hash)));
      const write = (i: number) => {
        const some = records
          .filter((_record, n) => (n + i) % 3 === 0)
          .map((record) => ({ ...record, plan: `plan-${(i * 7) % 61}`, version: 2 + ((i * 7) % 61) }));
        if (i % 2 === 0) some.reverse();
        return put(stores[i % processes]!, some);
      };
      // Two at each process: as many as it has connections for writing, for which no call may wait long.
      const writers = Array.from({ length: 2 * processes }, async (_, first) => {
        for (let i = first; i < 60; i += 2 * processes) await write(i);
      });
      await Promise.all(writers);
      const newest = new Map<string, number>(records.map((record) => [record.hash, 1]));
      for (let i = 0; i < 60; i++) {
        for (const [n, record] of records.entries()) {
          if ((n + i) % 3 === 0) newest.set(record.hash, Math.max(newest.get(record.hash)!, 2 + ((i * 7) % 61)));
        }
      }
      await eventually(async () => {
        for (const found of await everywhere([...newest.keys()]))
          expect(found.map((record) => record?.version)).toEqual([...newest.values()]);
      });
    });

    it('accepts more records in one put than fit one statement or one check, and notifies every process', async () => {
      const records = Array.from({ length: 4_500 }, () => aRecord());
      await put(writer, records);
      const hashes = records.map(({ hash }) => hash);
      await eventually(() => everywhere(hashes));
      await put(
        writer,
        records.map((record) => revoked(record)),
      );
      const tookMs = await inForceAfterMs(async () => {
        for (const found of await everywhere(hashes))
          expect(found.filter((record) => !record?.revokedAtMs)).toHaveLength(0);
      });
      expect(tookMs).toBeLessThan(REVOCATION_LIMIT_MS);
    });

    it.each(['notified', 'every notification lost'])(
      'has a revocation in force everywhere within a second: %s',
      async (way) => {
        const restore = way === 'notified' ? async () => {} : await subject.loseNotifications();
        try {
          const enoughMs = way === 'notified' ? NOTIFIED_MEDIAN_LIMIT_MS : Infinity;
          const medianMs = await leastMs(enoughMs, async () => {
            const took: number[] = [];
            for (let round = 0; round < ROUNDS; round++) took.push(await revocationMs(aRecord()));
            const { max, median } = report(way, took);
            expect(max).toBeLessThan(REVOCATION_LIMIT_MS);
            return median;
          });
          expect(medianMs).toBeLessThan(enoughMs);
        } finally {
          await restore();
        }
      },
    );

    it('has a revocation in force within a second when all connections broke just before', async () => {
      const took: number[] = [];
      for (let round = 0; round < 4; round++) {
        took.push(
          await revocationMs(aRecord(), async () => {
            await Promise.all(opened.slice(1).map(({ link }) => link.breakConnections()));
          }),
        );
        await opened[0]!.link.breakConnections();
      }
      report('connections broken', took);
      expect(Math.max(...took)).toBeLessThan(REVOCATION_LIMIT_MS);
    });

    it('never keeps a record that was read while its revocation was being written', async () => {
      const records = Array.from({ length: 150 }, () => aRecord());
      await put(writer, records);
      // A new hash each time, so that each look-up must ask the store at the moment of the change.
      for (const record of records)
        await Promise.all([lookupAll(record.hash), put(writer, [revoked(record)]), lookupAll(record.hash)]);
      const tookMs = await inForceAfterMs(async () => {
        for (const found of await everywhere(records.map(({ hash }) => hash)))
          expect(found.filter((record) => record?.version !== 2)).toHaveLength(0);
      });
      expect(tookMs).toBeLessThan(REVOCATION_LIMIT_MS);
    });

    it('does not remember unknown values, however many are tried', async () => {
      const before = stores.map((store) => subject.inMemory(store));
      for (const store of stores) {
        for (let tried = 0; tried < 10_000; tried += 5_000) {
          const hashes = Array.from({ length: 5_000 }, (_, i) => hashCredential(`unknown ${tried + i}`));
          const answers = await eventually(() => Promise.all(hashes.map((hash) => store.lookup(hash))));
          expect(answers.every((answer) => answer === null)).toBe(true);
        }
      }
      expect(stores.map((store) => subject.inMemory(store))).toEqual(before);
    });

    it.each(['refuses connections', 'does not answer'] as const)(
      'refuses look-ups within about a second while the store %s, as a revocation might be missing, and catches up',
      async (fault) => {
        const known = aRecord();
        await put(writer, [known]);
        await lookupAll(known.hash);
        const { store, link } = opened.at(-1)!;
        const refusedMs = await leastMs(REFUSAL_LIMIT_MS, async () => {
          link.restore();
          await lookup(store, aRecord().hash);
          if (fault === 'does not answer') link.hang();
          else await link.refuse();
          return elapsedMs(() => expect(store.lookup(aRecord().hash)).rejects.toThrow(UnavailableError));
        });
        expect(refusedMs).toBeLessThan(REFUSAL_LIMIT_MS);
        await expect(store.put([aRecord()])).rejects.toThrow();
        // Another process, with a working link, revokes it.
        const other = await started(() => subject.open());
        try {
          await put(other.store, [revoked(known)]);
        } finally {
          await other.store.close();
          await other.link.close();
        }
        const knownMs = await inForceAfterMs(() =>
          expect(Promise.resolve(store.lookup(known.hash))).rejects.toThrow(UnavailableError),
        );
        expect(knownMs).toBeLessThan(REVOCATION_LIMIT_MS);

        link.restore();
        await eventually(async () => expect(await store.lookup(known.hash)).toEqual(revoked(known)));
        expect(await lookup(store, aRecord().hash)).toBeNull();
      },
    );

    it('refuses to start without its store, and to look up before the start or after the end', async () => {
      const { store, link } = await subject.open();
      await expect(store.lookup(aRecord().hash)).rejects.toThrow(UnavailableError);
      await link.refuse();
      await expect(store.start()).rejects.toThrow();
      await store.close();
      await expect(store.lookup(aRecord().hash)).rejects.toThrow(UnavailableError);
      await link.close();
    });

    it('closes within a few seconds while the store does not answer, and refuses waiting look-ups', async () => {
      const { store, link } = await started(() => subject.open());
      await lookup(store, aRecord().hash);
      link.hang();
      const waiting = expect(store.lookup(aRecord().hash)).rejects.toThrow(UnavailableError);
      const closedMs = await elapsedMs(async () => {
        await store.close();
        await waiting;
      });
      expect(closedMs).toBeLessThan(3_000);
      await link.close();
    });

    function report(what: string, took: number[]): { median: number; max: number } {
      const sorted = took.toSorted((a, b) => a - b);
      const [median, max] = [sorted[sorted.length >> 1]!, sorted.at(-1)!];
      const numbers = `median ${median.toFixed()} ms, max ${max.toFixed()} ms`;
      process.stderr.write(`${name}, ${processes} processes, revocation seen everywhere, ${what}: ${numbers}\n`);
      return { median, max };
    }
  });
}
