import { UnavailableError } from '@tollgate/contracts';
import { configureLogging } from '@tollgate/runtime';
import { eventually, inForceAfterMs, useRedis, useRedisCluster, type RedisServer } from '@tollgate/testing';
import type { CredentialRecord } from '../credential-store';
import { aRecord, inMemory, revokedAfterMs } from '../record.fixture';
import { AuthBooks } from './auth-books.fixture';
import { FILL_AGAIN_MS, FILLER_LEASE_MS } from './filler';
import { RedisCredentialStore } from './redis-credential-store';

// An incomplete store is the subject here; each would log a warning.
configureLogging({ level: 'silent', pretty: false });

const REVOCATION_LIMIT_MS = 1_000;
const REVOKED_AT_MS = 1_800_000_000_000;
const META = 'tgc:{credentials}:meta';
const revoked = (record: CredentialRecord) => ({
  ...record,
  revokedAtMs: REVOKED_AT_MS,
  version: record.version + 1,
});

function emptiedSuite(name: string, urlOf: () => string, nodes: () => { port: number; server: RedisServer }[]): void {
  const onAll = (...command: string[]) =>
    Promise.all(nodes().map(({ port, server }) => server.exec(['redis-cli', '-c', '-p', String(port), ...command])));
  const empty = () => onAll('FLUSHALL');
  const cli = async (...command: string[]) =>
    nodes()[0]!.server.exec(['redis-cli', '-c', '-p', String(nodes()[0]!.port), ...command]);

  describe(`a credential store that was emptied, ${name}`, () => {
    let opened: RedisCredentialStore[];
    let gateways: RedisCredentialStore[];
    let books: AuthBooks;
    let release: () => void;

    beforeEach(async () => {
      await empty();
      opened = [];
      books = new AuthBooks();
      gateways = [open(), open(), open()];
      await Promise.all(gateways.map((gateway) => gateway.start()));
    });
    afterEach(async () => {
      release?.();
      await Promise.all(opened.map((store) => store.close()));
    });
    const open = () => {
      const store = new RedisCredentialStore({ url: urlOf() });
      opened.push(store);
      return store;
    };
    const addReplicas = (count: number) => Promise.all(Array.from({ length: count }, () => books.addReplica(open())));
    const holdFilling = () => {
      books.hold = new Promise((resolve) => (release = resolve));
    };
    const onEach = <T>(work: (gateway: RedisCredentialStore) => T) => Promise.all(gateways.map(work));
    const complete = () =>
      eventually(() => onEach(async (gateway) => expect(await gateway.lookup(aRecord().hash)).toBeNull()));
    /** How often another process takes over since then, on a machine so slow that a filler counts as dead. */
    const takenOver = (sinceMs: number) => Math.floor(Math.max(0, performance.now() - sinceMs) / FILLER_LEASE_MS);
    async function issue(count: number): Promise<CredentialRecord[]> {
      const records = Array.from({ length: count }, () => aRecord());
      for (const record of records) books.records.set(record.hash, record);
      await books.replicas[0]!.put(records);
      return records;
    }
    /** Whether each gateway has it in force within the promised second. */
    const expectRevoked = async (record: CredentialRecord) =>
      expect(await revokedAfterMs(gateways, record.hash)).toBeLessThan(REVOCATION_LIMIT_MS);

    it('is filled once by many replicas; until then it serves known credentials and never says 401', async () => {
      // Not even auth has connected yet, so no value may be called unknown.
      await onEach((gateway) => expect(gateway.lookup(aRecord().hash)).rejects.toThrow(UnavailableError));
      const addedMs = performance.now();
      await addReplicas(3);
      await complete();
      expect(books.fills).toBeLessThanOrEqual(1 + takenOver(addedMs));
      const [known, other] = (await issue(2)) as [CredentialRecord, CredentialRecord];
      await onEach(async (gateway) => expect(await gateway.lookup(known.hash)).toEqual(known));

      const { fills } = books;
      holdFilling();
      const heldMs = performance.now();
      await empty();
      await eventually(() => expect(books.fills).toBeGreaterThan(fills));
      await onEach((gateway) => expect(gateway.lookup(other.hash)).rejects.toThrow(UnavailableError));
      await onEach((gateway) => eventually(() => expect(inMemory(gateway, known.hash)).toEqual(known)));
      release();
      await eventually(() => onEach(async (gateway) => expect(await gateway.lookup(other.hash)).toEqual(other)));
      await complete();
      await onEach((gateway) => eventually(() => expect(inMemory(gateway, known.hash)).toEqual(known)));
      expect(books.fills).toBeLessThanOrEqual(fills + 1 + takenOver(heldMs));
    });

    it('has a revocation in force everywhere within a second: before, during and after its filling', async () => {
      const [first] = await addReplicas(2);
      await complete();
      const [before, during, after] = (await issue(3)) as [CredentialRecord, CredentialRecord, CredentialRecord];
      for (const record of [before, during, after])
        await onEach(async (gateway) => expect(await gateway.lookup(record.hash)).toEqual(record));
      // No notification is sent, and the change is gone before the next check.
      await onAll('ACL', 'SETUSER', 'default', 'resetchannels');
      await Promise.all([books.commit(revoked(before)).catch(() => {}), empty()]);
      await expectRevoked(before);
      await onAll('ACL', 'SETUSER', 'default', 'allchannels');

      const { fills } = books;
      holdFilling();
      await empty();
      await eventually(() => expect(books.fills).toBeGreaterThan(fills));
      // The filling has read an older state.
      await books.commit(revoked(during), first);
      await expectRevoked(during);
      release();
      await complete();
      await books.commit(revoked(after), first);
      await expectRevoked(after);
      for (const record of [before, during, after]) {
        const cold = open();
        await cold.start();
        expect(await cold.lookup(record.hash)).toEqual(revoked(record));
      }
    });

    it('never returns what a late writer read before the revocation, before or after it is complete', async () => {
      const [late] = await addReplicas(1);
      await complete();
      const [record] = (await issue(1)) as [CredentialRecord];
      await books.commit(revoked(record));
      const before = books.fills;
      holdFilling();
      await empty();
      await eventually(() => expect(books.fills).toBeGreaterThan(before));
      await late!.put([record]);
      await onEach((gateway) => expect(gateway.lookup(record.hash)).rejects.toThrow(UnavailableError));
      release();
      await complete();
      await late!.put([record]);
      await onEach(async (gateway) => expect(await gateway.lookup(record.hash)).toEqual(revoked(record)));
    });

    it('is filled again when it is emptied during a filling, however often, and then lacks nothing', async () => {
      await addReplicas(2);
      await complete();
      const records = await issue(40);
      for (let round = 0; round < 3; round++) {
        holdFilling();
        const before = books.fills;
        await empty();
        await eventually(() => expect(books.fills).toBeGreaterThan(before));
        // A part has been written, and is lost.
        await books.replicas[1]!.put(records.slice(0, 20));
        await empty();
        release();
        await eventually(() =>
          onEach(async (gateway) => {
            const found = await Promise.all(records.map((record) => gateway.lookup(record.hash)));
            expect(found).toEqual(records);
          }),
        );
        await complete();
      }
    });

    it('is filled by another process when the filling one dies or hangs', async () => {
      const [first] = await addReplicas(1);
      await complete();
      const [known] = (await issue(1)) as [CredentialRecord];
      const before = books.fills;
      holdFilling();
      await empty();
      await eventually(() => expect(books.fills).toBeGreaterThan(before));
      await first!.close();
      books.hold = Promise.resolve();
      const { fills } = books;
      const fromMs = performance.now();
      await addReplicas(2);
      const tookMs = await inForceAfterMs(
        () => onEach(async (gateway) => expect(await gateway.lookup(known.hash)).toEqual(known)),
        fromMs,
      );
      process.stderr.write(`${name}: a filling taken over after ${tookMs.toFixed()} ms\n`);
      expect(tookMs).toBeLessThan(FILLER_LEASE_MS + 3_000);
      expect(books.fills).toBeGreaterThan(fills);
      expect(books.fills).toBeLessThanOrEqual(fills + 1 + takenOver(fromMs + FILLER_LEASE_MS));
    });

    it('is filled again after it became an older copy, with nothing unknown meanwhile and nothing undone', async () => {
      await addReplicas(1);
      await complete();
      const [record, late] = (await issue(2)) as [CredentialRecord, CredentialRecord];
      const before = await cli('HGET', META, 'number');
      await onEach(async (gateway) => expect(await gateway.lookup(record.hash)).toEqual(record));
      await books.commit(revoked(record));
      await expectRevoked(record);
      const { fills } = books;
      holdFilling();
      // The state before the last change.
      await cli('HDEL', 'tgc:{credentials}:records', late.hash, record.hash);
      await cli('ZREM', 'tgc:{credentials}:changes', late.hash, record.hash);
      await cli('HSET', META, 'number', before.trim());
      await eventually(() => expect(books.fills).toBeGreaterThan(fills));
      await onEach((gateway) => expect(gateway.lookup(late.hash)).rejects.toThrow(UnavailableError));
      await onEach((gateway) => eventually(() => expect(inMemory(gateway, record.hash)).toEqual(revoked(record))));
      release();
      await eventually(() => onEach(async (gateway) => expect(await gateway.lookup(late.hash)).toEqual(late)));
      await onEach((gateway) => eventually(() => expect(inMemory(gateway, record.hash)).toEqual(revoked(record))));
    });
  });
}

describe('one server', () => {
  const redis = useRedis();
  emptiedSuite(
    'one server',
    () => redis.url,
    () => [{ port: redis.port, server: redis }],
  );

  const cli = (...command: string[]) => redis.exec(['redis-cli', '-p', String(redis.port), ...command]);

  const restart = () => redis.kill().then(() => redis.start());
  /** Two failovers, to another server and back. */
  const promoteAgain = () => cli('REPLICAOF', '127.0.0.1', '1').then(() => cli('REPLICAOF', 'NO', 'ONE'));

  it.each([
    ['a restart', restart],
    ['it became a replica and was promoted again', promoteAgain],
  ])('serves at once after %s, and everything is written again, as the last moments may be lost', async (_, change) => {
    await cli('FLUSHALL');
    const books = new AuthBooks();
    const gateway = new RedisCredentialStore({ url: redis.url });
    await gateway.start();
    const auth = await books.addReplica(new RedisCredentialStore({ url: redis.url }));
    const record = aRecord();
    await books.commit(record);
    await eventually(async () => expect(await gateway.lookup(record.hash)).toEqual(record));
    // Committed and acknowledged, and lost with the end of the log.
    books.records.set(record.hash, revoked(record));
    const changedMs = performance.now();
    try {
      await change();
      await eventually(async () => expect(await gateway.lookup(aRecord().hash)).toBeNull());
      await eventually(() => expect(inMemory(gateway, record.hash)).toEqual(revoked(record)));
      // Once, and again each second while the server was away.
      const again = Math.floor((performance.now() - changedMs) / FILL_AGAIN_MS);
      expect(books.fills).toBeGreaterThan(1);
      expect(books.fills).toBeLessThanOrEqual(2 + again);
    } finally {
      await Promise.all([gateway.close(), auth.close()]);
    }
  });

  it.each([
    ['restarts', restart],
    ['becomes a replica and is promoted again', promoteAgain],
  ])('that %s during a filling is filled again, as the writes before may be lost', async (_, change) => {
    await cli('FLUSHALL');
    const [gateway, auth] = [0, 1].map(() => new RedisCredentialStore({ url: redis.url })) as [
      RedisCredentialStore,
      RedisCredentialStore,
    ];
    await Promise.all([gateway.start(), auth.start()]);
    const record = aRecord();
    let fills = 0;
    auth.refillWith(async () => {
      fills++;
      await auth.put([record]);
      if (fills > 1) return;
      await change();
      // Acknowledged, and lost: the server that continues has never had it.
      await cli('HDEL', 'tgc:{credentials}:records', record.hash);
      await cli('ZREM', 'tgc:{credentials}:changes', record.hash);
      await eventually(() => auth.check());
    });
    try {
      await eventually(async () => expect(await gateway.lookup(aRecord().hash)).toBeNull());
      expect(await gateway.lookup(record.hash)).toEqual(record);
    } finally {
      await Promise.all([gateway.close(), auth.close()]);
    }
  });
});

describe('a cluster of three', () => {
  const cluster = useRedisCluster();
  emptiedSuite(
    'a cluster of three',
    () => `redis+cluster://${cluster.nodes.map(({ port }) => `127.0.0.1:${port}`).join(',')}`,
    () => cluster.nodes,
  );
});
