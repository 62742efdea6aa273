import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { useRedis } from '@tollgate/testing';
import { RedisLink } from './redis-link';

/** Made for this test with openssl: for localhost and 127.0.0.1, valid until 2126. */
const CERTIFICATE = `-----BEGIN CERTIFICATE-----
MIIBmzCCAUGgAwIBAgIULGus8iWacthKLo8PMu/Z1aFt8CIwCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyMTE2MDIwNVoYDzIxMjYxMDI4
MTYwMjA1WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAASmnqpTFLCN8T1Uexm32UjtdlIKVmtAHS6+278cGIhpEaeJQZzrRvu7
2kS7oMk4p0nQ5Dv29wdIsaXv6J9/a5Kqo28wbTAdBgNVHQ4EFgQUKsV4oy0yIX2Y
g4jjyqCZYkrCsHAwHwYDVR0jBBgwFoAUKsV4oy0yIX2Yg4jjyqCZYkrCsHAwDwYD
VR0TAQH/BAUwAwEB/zAaBgNVHREEEzARgglsb2NhbGhvc3SHBH8AAAEwCgYIKoZI
zj0EAwIDSAAwRQIgWOMZEXwI1o6sxqRVBxON/UiyORcFx2j+eKnJ6nI8P9kCIQCW
sr0zySsu+KaaY3osIC9M8d9HuvIkOSEtTboV9781xw==
-----END CERTIFICATE-----
`;
const KEY = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgkmTUSmhpL0YvQRV8
EJroWkIUu9J9G5RT8xGkd4r4vA6hRANCAASmnqpTFLCN8T1Uexm32UjtdlIKVmtA
HS6+278cGIhpEaeJQZzrRvu72kS7oMk4p0nQ5Dv29wdIsaXv6J9/a5Kq
-----END PRIVATE KEY-----
`;

const redis = useRedis({
  args: ['--requirepass', 'secret'],
  files: { '/tls/cert.pem': CERTIFICATE, '/tls/key.pem': KEY },
});
let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'tollgate-tls-'));
  writeFileSync(join(folder, 'ca.pem'), CERTIFICATE);
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

it('speaks TLS with a server whose authority it knows, and with no other', async () => {
  const ca = join(folder, 'ca.pem');
  expect(await startOf(`rediss://:secret@localhost:${redis.port}?ca=${ca}`)).toBe('hello');
  expect(await startOf(`rediss://:secret@localhost:${redis.port}`)).toMatch(/^REDIS_URL .*self-signed certificate/);
  expect(await startOf(`redis://:secret@localhost:${redis.port}`)).toMatch(/^REDIS_URL .*does not answer/);
});
