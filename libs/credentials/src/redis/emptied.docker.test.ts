import { UnavailableError } from '@tollgate/contracts';
import { configureLogging } from '@tollgate/runtime';
import { eventually, useRedis, useRedisCluster, type RedisServer } from '@tollgate/testing';
import type { CredentialRecord } from '../credential-store';
import { aRecord, inMemory, revokedAfterMs } from '../record.fixture';
import { FILLER_LEASE_MS } from './filler';
import { RedisCredentialStore } from './redis-credential-store';

// A store that is not complete is the subject here; each would be a warning.
configureLogging({ level: 'silent', pretty: false });

const REVOCATION_LIMIT_MS = 1_000;
const REVOKED_AT_MS = 1_800_000_000_000;
const META = 'tgc:{credentials}:meta';
const revoked = (record: CredentialRecord) => ({
  ...record,
  revokedAtMs: REVOKED_AT_MS,
  version: record.version + 1,
});

/** What auth's own database has, and auth, in `replicas` processes that share it. */
class Books {
  readonly records = new Map<string, CredentialRecord>();
  readonly replicas: RedisCredentialStore[] = [];
  /** Fillings that began to write. */
  fills = 0;
  /** No filling gets further than this: after it has read, before it writes. */
  hold: Promise<void> = Promise.resolve();

  async addReplica(store: RedisCredentialStore): Promise<RedisCredentialStore> {
    await store.start();
    this.replicas.push(store);
    store.refillWith(() => this.refill(store));
    return store;
  }

  /** Commits, then projects, then answers. */
  async commit(record: CredentialRecord, by = this.replicas[0]!): Promise<void> {
    this.records.set(record.hash, record);
    await by.put([record]);
  }

  private async refill(store: RedisCredentialStore): Promise<void> {
    this.fills++;
    const read = [...this.records.values()];
    await this.hold;
    await store.put(read);
  }
}

function emptiedSuite(name: string, urlOf: () => string, nodes: () => { port: number; server: RedisServer }[]): void {
  const onAll = (...command: string[]) =>
    Promise.all(nodes().map(({ port, server }) => server.exec(['redis-cli', '-c', '-p', String(port), ...command])));
  const empty = () => onAll('FLUSHALL');
  const cli = async (...command: string[]) =>
    nodes()[0]!.server.exec(['redis-cli', '-c', '-p', String(nodes()[0]!.port), ...command]);

  describe(`a credential store that was emptied, ${name}`, () => {
    let opened: RedisCredentialStore[];
    let gateways: RedisCredentialStore[];
    let books: Books;
    let release: () => void;

    beforeEach(async () => {
      await empty();
      opened = [];
      books = new Books();
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
    async function issue(count: number): Promise<CredentialRecord[]> {
      const records = Array.from({ length: count }, () => aRecord());
      for (const record of records) books.records.set(record.hash, record);
      await books.replicas[0]!.put(records);
      return records;
    }
    /** Whether each gateway has it in force within the second that is promised. */
    const expectRevoked = async (record: CredentialRecord) =>
      expect(await revokedAfterMs(gateways, record.hash)).toBeLessThan(REVOCATION_LIMIT_MS);

    it('is filled once, however many replicas auth has; until then known credentials go on and unknown ones are 503, never 401', async () => {
      // Not even auth has been here: nobody may say that a value is unknown.
      await onEach((gateway) => expect(gateway.lookup(aRecord().hash)).rejects.toThrow(UnavailableError));
      await addReplicas(3);
      await complete();
      expect(books.fills).toBe(1);
      const [known, other] = (await issue(2)) as [CredentialRecord, CredentialRecord];
      await onEach(async (gateway) => expect(await gateway.lookup(known.hash)).toEqual(known));

      holdFilling();
      const heldFrom = performance.now();
      await empty();
      await eventually(() => expect(books.fills).toBe(2));
      await onEach((gateway) => expect(gateway.lookup(other.hash)).rejects.toThrow(UnavailableError));
      await onEach((gateway) => eventually(() => expect(inMemory(gateway, known.hash)).toEqual(known)));
      release();
      // On a machine that is so slow it is taken for dead.
      const takenOver = Math.floor((performance.now() - heldFrom) / FILLER_LEASE_MS);
      await eventually(() => onEach(async (gateway) => expect(await gateway.lookup(other.hash)).toEqual(other)));
      await complete();
      await onEach((gateway) => eventually(() => expect(inMemory(gateway, known.hash)).toEqual(known)));
      expect(books.fills).toBeLessThanOrEqual(2 + takenOver);
    });

    it('has a revocation in force everywhere within a second: before, during and after its filling', async () => {
      const [first] = await addReplicas(2);
      await complete();
      const [before, during, after] = (await issue(3)) as [CredentialRecord, CredentialRecord, CredentialRecord];
      for (const record of [before, during, after])
        await onEach(async (gateway) => expect(await gateway.lookup(record.hash)).toEqual(record));
      // Nobody hears of it, and when they would look it is gone already.
      await onAll('ACL', 'SETUSER', 'default', 'resetchannels');
      await Promise.all([books.commit(revoked(before)).catch(() => {}), empty()]);
      await expectRevoked(before);
      await onAll('ACL', 'SETUSER', 'default', 'allchannels');

      const { fills } = books;
      holdFilling();
      await empty();
      await eventually(() => expect(books.fills).toBeGreaterThan(fills));
      // What the filling has read is older.
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

    it('never gives out what a late writer read before the revocation: not before, not after it is complete again', async () => {
      const [late] = await addReplicas(1);
      await complete();
      const [record] = (await issue(1)) as [CredentialRecord];
      await books.commit(revoked(record));
      holdFilling();
      await empty();
      await eventually(() => expect(books.fills).toBe(2));
      await late!.put([record]);
      await onEach((gateway) => expect(gateway.lookup(record.hash)).rejects.toThrow(UnavailableError));
      release();
      await complete();
      await late!.put([record]);
      await onEach(async (gateway) => expect(await gateway.lookup(record.hash)).toEqual(revoked(record)));
    });

    it('is filled again when it is emptied in the middle of that, however often, and lacks nothing then', async () => {
      await addReplicas(2);
      await complete();
      const records = await issue(40);
      for (let round = 0; round < 3; round++) {
        holdFilling();
        const before = books.fills;
        await empty();
        await eventually(() => expect(books.fills).toBeGreaterThan(before));
        // A part is there already, and goes.
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

    it('is filled by another process when the one that was at it dies or hangs', async () => {
      const [first] = await addReplicas(1);
      await complete();
      const [known] = (await issue(1)) as [CredentialRecord];
      holdFilling();
      await empty();
      await eventually(() => expect(books.fills).toBe(2));
      await first!.close();
      books.hold = Promise.resolve();
      const from = performance.now();
      await addReplicas(2);
      await eventually(() => onEach(async (gateway) => expect(await gateway.lookup(known.hash)).toEqual(known)), {
        timeoutMs: FILLER_LEASE_MS + 3_000,
      });
      process.stderr.write(`${name}: a filling taken over after ${(performance.now() - from).toFixed()} ms\n`);
      expect(books.fills).toBe(3);
    });

    it('that is an older copy is filled again: what it lacks is not unknown meanwhile, and what it undid is done again', async () => {
      await addReplicas(1);
      await complete();
      const [record, late] = (await issue(2)) as [CredentialRecord, CredentialRecord];
      const before = await cli('HGET', META, 'number');
      await onEach(async (gateway) => expect(await gateway.lookup(record.hash)).toEqual(record));
      await books.commit(revoked(record));
      await expectRevoked(record);
      holdFilling();
      // As it was before the last change.
      await cli('HDEL', 'tgc:{credentials}:records', late.hash, record.hash);
      await cli('ZREM', 'tgc:{credentials}:changes', late.hash, record.hash);
      await cli('HSET', META, 'number', before.trim());
      await eventually(() => expect(books.fills).toBe(2));
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

  it('that was restarted serves at once, and all is written anew: its last moments may be lost', async () => {
    const cli = (...command: string[]) => redis.exec(['redis-cli', '-p', String(redis.port), ...command]);
    await cli('FLUSHALL');
    const books = new Books();
    const gateway = new RedisCredentialStore({ url: redis.url });
    await gateway.start();
    const auth = await books.addReplica(new RedisCredentialStore({ url: redis.url }));
    const record = aRecord();
    await books.commit(record);
    await eventually(async () => expect(await gateway.lookup(record.hash)).toEqual(record));
    // Committed and acknowledged, and lost with the end of the log.
    books.records.set(record.hash, revoked(record));
    await redis.kill();
    await redis.start();
    await eventually(async () => expect(await gateway.lookup(aRecord().hash)).toBeNull());
    await eventually(() => expect(inMemory(gateway, record.hash)).toEqual(revoked(record)));
    expect(books.fills).toBe(2);
    await Promise.all([gateway.close(), auth.close()]);
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
