import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { rootCertificates } from 'node:tls';
import { LOCALHOST_CERTIFICATE, LOCALHOST_KEY, useRedis } from '@tollgate/testing';
import { RedisLink } from './redis-link';

const redis = useRedis({
  args: ['--requirepass', 'secret'],
  files: { '/tls/cert.pem': LOCALHOST_CERTIFICATE, '/tls/key.pem': LOCALHOST_KEY },
});
let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'tollgate-tls-'));
  writeFileSync(join(folder, 'ca.pem'), LOCALHOST_CERTIFICATE);
  // From now on the port speaks TLS only.
  const settings = [
    'tls-cert-file',
    '/tls/cert.pem',
    'tls-key-file',
    '/tls/key.pem',
    'tls-ca-cert-file',
    '/tls/cert.pem',
  ];
  await redis.exec([
    ...[
      'redis-cli',
      '-p',
      String(redis.port),
      '-a',
      'secret',
      'CONFIG',
      'SET',
      'port',
      '0',
      'tls-port',
      String(redis.port),
    ],
    ...['tls-auth-clients', 'no', ...settings],
  ]);
});
afterAll(() => rmSync(folder, { recursive: true }));

async function startOf(url: string): Promise<string> {
  const link = new RedisLink({ url, name: 'test' });
  try {
    await link.start();
    return String(await link.one({ command: 'echo', keys: ['hello'], args: [] }));
  } catch (error) {
    return (error as Error).message;
  } finally {
    link.close();
  }
}

it('a client uses TLS with a server whose authority it knows, and refuses any other', async () => {
  const ca = join(folder, 'ca.pem');
  expect(await startOf(`rediss://:secret@localhost:${redis.port}?ca=${ca}`)).toBe('hello');
  expect(await startOf(`rediss://:secret@localhost:${redis.port}`)).toMatch(
    /^REDIS_URL .*: the certificate of Redis is not trusted: self-signed .*: name its authority in \?ca=<file>\.$/,
  );
  expect(await startOf(`redis://:secret@localhost:${redis.port}`)).toMatch(/^REDIS_URL .*does not answer/);
});

it('a client accepts either of two authorities in a file, so that an authority changes without a stop', async () => {
  const both = join(folder, 'both.pem');
  const another = rootCertificates[0]!;
  for (const authorities of [
    [another, LOCALHOST_CERTIFICATE],
    [LOCALHOST_CERTIFICATE, another],
  ]) {
    writeFileSync(both, `${authorities.join('\n')}\n`);
    expect(await startOf(`rediss://:secret@localhost:${redis.port}?ca=${both}`)).toBe('hello');
  }
  writeFileSync(both, `${another}\n`);
  expect(await startOf(`rediss://:secret@localhost:${redis.port}?ca=${both}`)).toMatch(/^REDIS_URL .*self-signed/);
});

it('a server that asks for a client certificate refuses each client, and the error says what to set', async () => {
  const options = ['--tls', '--insecure', '-p', String(redis.port), '-a', 'secret'];
  await redis.exec(['redis-cli', ...options, 'CONFIG', 'SET', 'tls-auth-clients', 'yes']);
  expect(await startOf(`rediss://:secret@localhost:${redis.port}?ca=${join(folder, 'ca.pem')}`)).toMatch(
    /^REDIS_URL .*: Redis refuses this TLS \(tlsv13 alert certificate required\): set its tls-auth-clients to no\.$/,
  );
});
