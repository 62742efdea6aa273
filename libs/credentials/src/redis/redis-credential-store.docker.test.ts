import { configureLogging } from '@tollgate/runtime';
import { eventually, useRedis, useRedisCluster, type RedisServer } from '@tollgate/testing';
import { credentialsSuite, type CredentialsUnderTest } from '../credentials.suite';
import { aRecord, started } from '../record.fixture';
import { Link } from '../link.fixture';
import { RedisCredentialStore } from './redis-credential-store';

// Lost connections are the subject here; each would be a warning.
configureLogging({ level: 'silent', pretty: false });

/** A store on links of its own. */
async function open(ports: number[]): ReturnType<CredentialsUnderTest['open']> {
  const links = await Promise.all(ports.map((port) => Link.open({ host: '127.0.0.1', port })));
  const addresses = links.map((link) => `127.0.0.1:${link.port}`).join(',');
  const natMap = Object.fromEntries(
    ports.map((port, i) => [`127.0.0.1:${port}`, { host: '127.0.0.1', port: links[i]!.port }]),
  );
  const store = new RedisCredentialStore(
    ports.length === 1 ? { url: `redis://${addresses}` } : { url: `redis+cluster://${addresses}`, natMap },
  );
  return { store, link: all(links) };
}

/** Several links spoiled as one. */
function all(links: Link[]): Pick<Link, 'breakConnections' | 'refuse' | 'hang' | 'restore' | 'close'> {
  return {
    breakConnections: async () => void (await Promise.all(links.map((link) => link.breakConnections()))),
    refuse: async () => void (await Promise.all(links.map((link) => link.refuse()))),
    hang: () => links.forEach((link) => link.hang()),
    restore: () => links.forEach((link) => link.restore()),
    close: async () => void (await Promise.all(links.map((link) => link.close()))),
  };
}

/** Auth has been here, and had nothing to write. */
async function complete(ports: number[]): Promise<void> {
  const { store, link } = await started(async () => {
    const opened = await open(ports);
    opened.store.refillWith(async () => {});
    return opened;
  });
  await eventually(async () => expect(await store.lookup(aRecord().hash)).toBeNull());
  await store.close();
  await link.close();
}

function subject(nodes: () => { port: number; server: RedisServer }[]): () => Promise<CredentialsUnderTest> {
  const onAll = (...command: string[]) =>
    Promise.all(nodes().map(({ port, server }) => server.exec(['redis-cli', '-p', String(port), ...command])));
  return async () => {
    await complete(nodes().map(({ port }) => port));
    return {
      open: () => open(nodes().map(({ port }) => port)),
      async loseNotifications() {
        await onAll('ACL', 'SETUSER', 'default', 'resetchannels');
        return async () => void (await onAll('ACL', 'SETUSER', 'default', 'allchannels'));
      },
      inMemory: (store) => (store as RedisCredentialStore).size,
    };
  };
}

describe('one server', () => {
  const redis = useRedis();
  credentialsSuite(
    'RedisCredentialStore',
    subject(() => [{ port: redis.port, server: redis }]),
  );
});

describe('a cluster of three', () => {
  const cluster = useRedisCluster();
  credentialsSuite(
    'RedisCredentialStore, cluster',
    subject(() => cluster.nodes),
  );
});
