import { configureLogging } from '@tollgate/runtime';
import { readFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { join, resolve } from 'node:path';
import { CredentialGuard } from '../../apps/gateway/src/accept/credential-guard';

configureLogging({ level: 'silent', pretty: false });
const ROOT = resolve(__dirname, '../..');
const HAPROXY = '172.18.0.9';
/** A request as a gateway gets it from HAProxy. Docker names clients by private addresses too. */
const of = (client: string) =>
  ({ socket: { remoteAddress: HAPROXY }, headers: { 'x-forwarded-for': client } }) as unknown as IncomingMessage;

/** The lines of each part of HAProxy's configuration, by its name. */
function partsOfProxy(): Map<string, string[]> {
  const parts = new Map<string, string[]>();
  let lines: string[] = [];
  for (const line of readFileSync(join(ROOT, 'deploy/haproxy/haproxy.cfg'), 'utf8').split('\n')) {
    const [, name] = /^(\w+ [\w-]+)/.exec(line) ?? [];
    if (name) parts.set(name, (lines = []));
    else lines.push(line.trim());
  }
  return parts;
}

it('HAProxy of the stack names the client at each published port, and removes what the client sent', () => {
  const published = [...partsOfProxy()].filter(([, lines]) => lines.some((line) => /^bind :\d+/.test(line)));
  expect(published.map(([name]) => name)).toEqual(['frontend public', 'frontend operator']);
  for (const [, lines] of published)
    expect(lines.filter((line) => /forward(ed-)?for/i.test(line) && !line.startsWith('#'))).toEqual([
      'http-request del-header X-Forwarded-For',
      'option forwardfor',
    ]);
});

it('HAProxy of the stack takes no HTTP/2, whose connections carry many requests past its limit', () => {
  const parts = partsOfProxy();
  expect(parts.get('defaults all')).toContain('option disable-h2-upgrade');
  expect([...parts.values()].flat().filter((line) => /\b(proto h2|alpn)\b/.test(line))).toEqual([]);
});

it('gateways of the stack limit wrong credentials of each client, and not those of HAProxy', () => {
  const compose = readFileSync(join(ROOT, 'docker-compose.yml'), 'utf8');
  const serviceOf = (name: string) => new RegExp(`^  ${name}:\\n(?:(?: {4}.*)?\\n)+`, 'm').exec(compose)?.[0] ?? '';
  const [gateway, console] = ['gateway', 'console'].map(
    (name) => /^ {6}TOLLGATE_TRUSTED_PROXIES: (\S+)$/m.exec(serviceOf(name))?.[1],
  );
  expect(console).toBe(gateway);
  const guard = new CredentialGuard(gateway, () => 1_000);
  for (const client of ['203.0.113.9', '172.18.0.1', '2001:db8::5']) {
    for (let n = 0; n < 100; n++) expect(guard.failed(of(client))).toBe(0);
    expect(guard.waitMs(of(client))).toBe(60_000);
    expect(guard.waitMs(of('203.0.113.8'))).toBe(0);
  }
});
