import { execFile } from 'node:child_process';
import { resolve } from 'node:path';
import { promisify } from 'node:util';

interface Cookie {
  name: string;
  attributes: Record<string, unknown>;
}

const SCRIPT = resolve(__dirname, 'cookies-of.mjs');

async function cookiesAt(origin: string): Promise<Cookie[]> {
  const { stdout } = await promisify(execFile)(process.execPath, [SCRIPT, origin]);
  return Object.values(JSON.parse(stdout) as Record<string, Cookie>);
}

// With OpenID Connect they are lax: console.test.ts.
it('over TLS, every cookie is bound to its host: __Host-, Secure, the whole path, no domain', async () => {
  const cookies = await cookiesAt('https://console.example.com');
  expect(cookies.length).toBeGreaterThan(1);
  for (const { name, attributes } of cookies) {
    expect(name).toMatch(/^__Host-tollgate\./);
    expect(attributes).toMatchObject({ secure: true, httpOnly: true, sameSite: 'strict', path: '/' });
    expect(attributes).not.toHaveProperty('domain');
  }
});

it('without TLS, cookies have no prefix, because browsers would refuse them', async () => {
  for (const { name, attributes } of await cookiesAt('http://localhost:8080')) {
    expect(name).toMatch(/^tollgate\./);
    expect(attributes).toMatchObject({ secure: false, httpOnly: true, sameSite: 'strict', path: '/' });
  }
});
