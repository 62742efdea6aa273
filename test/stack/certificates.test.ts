import { execFile } from 'node:child_process';
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { connect, createServer } from 'node:tls';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';

const MODULE = pathToFileURL(resolve(__dirname, '../../tools/stack/certificates.mjs')).href;
const DAY_MS = 24 * 60 * 60 * 1_000;
const SERVERS = ['postgres', 'redis', 'kafka'];
let directory: string;
beforeEach(() => (directory = mkdtempSync(join(tmpdir(), 'tollgate-certificates-'))));
afterEach(() => rmSync(directory, { recursive: true }));

const read = (name: string) => readFileSync(join(directory, name), 'utf8');
/** Calls `makeCertificates` in another process, because it is in an ES module. */
async function make(now = Date.now()): Promise<string> {
  const program = `import { makeCertificates } from '${MODULE}';
    console.log(await makeCertificates(${JSON.stringify(directory)}, ${now}))`;
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', program]);
  return stdout.trim();
}

/** Resolves when a client that trusts the authority has verified the server as `name`. */
async function speakTo(server: string, name: string): Promise<void> {
  const listening = createServer({ cert: read(`tls-${server}-cert`), key: read(`tls-${server}-key`) });
  listening.on('tlsClientError', () => {});
  await new Promise<void>((done) => listening.listen(0, '127.0.0.1', done));
  try {
    await new Promise<void>((done, fail) => {
      const { port } = listening.address() as AddressInfo;
      const socket = connect({ host: '127.0.0.1', port, ca: read('tls-ca'), servername: name }, done);
      socket.on('error', fail);
      listening.on('close', () => socket.destroy());
      socket.on('secureConnect', () => socket.destroy());
    });
  } finally {
    await new Promise((done) => listening.close(done));
  }
}

it('a client that trusts the authority accepts each server under its own name and no other', async () => {
  await make();
  for (const server of SERVERS) {
    await speakTo(server, server);
    await speakTo(server, 'localhost');
    expect(read(`tls-${server}`)).toBe(read(`tls-${server}-key`) + read(`tls-${server}-cert`));
  }
  await expect(speakTo('redis', 'kafka')).rejects.toThrow(/Hostname\/IP does not match/);
  expect(statSync(join(directory, 'tls-ca-key')).mode & 0o777).toBe(0o400);
});

it('certificates are kept until 60 days before they expire, and the authority while it outlives new ones', async () => {
  const now = Date.now();
  const first = await make(now);
  const [authority, server] = [read('tls-ca'), read('tls-redis-cert')];
  expect(await make(now + 300 * DAY_MS)).toBe(first);
  expect([read('tls-ca'), read('tls-redis-cert')]).toEqual([authority, server]);
  expect(await make(now + 310 * DAY_MS)).not.toBe(first);
  expect(read('tls-ca')).toBe(authority);
  expect(read('tls-redis-cert')).not.toBe(server);
  await make(now + 3_300 * DAY_MS);
  expect(read('tls-ca')).not.toBe(authority);
});

it('certificates of a lost authority are made again', async () => {
  await make();
  const server = read('tls-kafka-cert');
  rmSync(join(directory, 'tls-ca-key'));
  await make();
  expect(read('tls-kafka-cert')).not.toBe(server);
  await speakTo('kafka', 'kafka');
});

it.each(['tls-ca', 'tls-ca-key', 'tls-redis', 'tls-redis-key', 'tls-redis-cert'])(
  'a start repairs certificates of which a full disk left %s empty',
  async (name) => {
    await make();
    chmodSync(join(directory, name), 0o600);
    writeFileSync(join(directory, name), '');
    await make();
    for (const server of SERVERS) {
      await speakTo(server, server);
      expect(read(`tls-${server}`)).toBe(read(`tls-${server}-key`) + read(`tls-${server}-cert`));
    }
  },
);

it('a start repairs certificates whose renewal ended in the middle', async () => {
  await make();
  const [authorityKey, key] = [read('tls-ca-key'), read('tls-redis-key')];
  rmSync(join(directory, 'tls-ca'));
  await make();
  for (const [name, former] of [
    ['tls-ca-key', authorityKey],
    ['tls-redis-key', key],
  ] as const) {
    chmodSync(join(directory, name), 0o600);
    writeFileSync(join(directory, name), former);
  }
  await make();
  for (const server of SERVERS) await speakTo(server, server);
});
