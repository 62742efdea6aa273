import { eventually } from '@tollgate/testing';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { parse } from 'pg-connection-string';
import { API, join, PASSWORD, SESSION } from '../running/people';
import type { RunningConsole } from '../running/running-console';

/** A network to PostgreSQL that can be taken away. */
export class Network {
  private readonly carried = new Set<Socket>();
  private readonly server: Server;
  private port = 0;

  constructor(private readonly url: string) {
    const { host, port } = parse(url);
    this.server = createServer((client) => {
      const upstream = connect(`${host}/.s.PGSQL.${port}`);
      for (const socket of [client, upstream])
        this.carried.add(
          socket.on('error', () => {}).once('close', () => [client, upstream].map((one) => one.destroy())),
        );
      client.pipe(upstream).pipe(client);
    });
  }

  async arrive(): Promise<string> {
    this.server.listen(this.port, '127.0.0.1');
    await once(this.server, 'listening');
    this.port = (this.server.address() as AddressInfo).port;
    const { user, password, database: name } = parse(this.url);
    return `postgres://${user}:${encodeURIComponent(password ?? '')}@127.0.0.1:${this.port}/${name}`;
  }

  leave(): void {
    this.server.close();
    for (const socket of this.carried) socket.destroy();
    this.carried.clear();
  }
}

/** Before the first operator has an account. */
export function outageTests(deployed: () => { console_: RunningConsole; network: Network }): void {
  it('without PostgreSQL, each request gets a 503 with the time to wait, and none is logged as a mistake', async () => {
    const { console_, network } = deployed();
    const browser = await join(console_.base, console_.operatorLink!, 'operator@example.com', 'Grace');
    const session = browser.cookies.get(SESSION);
    expect((await browser.get(`${API}/me`)).status).toBe(200);
    network.leave();
    const credentials = { email: 'operator@example.com', password: PASSWORD };
    for (let time = 0; time < 2; time++)
      for (const [method, path, body] of [
        ['GET', 'me'],
        ['GET', 'sessions'],
        ['GET', 'operator/people'],
        ['GET', 'operator/live/fleet'],
        ['POST', 'auth/sign-in/email', credentials],
        ['GET', 'auth/passkey/list-user-passkeys'],
        ['POST', 'auth/sign-out', {}],
        ['POST', 'invitation/look', { secret: 'x'.repeat(43) }],
      ] as const) {
        const { status, json, headers } = await browser.sendOnce(method, `${API}/${path}`, body);
        expect([path, status, json?.error?.code, headers.get('retry-after'), headers.getSetCookie()]).toEqual([
          ...[path, 503, 'unavailable', '1', []],
        ]);
      }
    // The lines may arrive after the answers.
    const lines = await eventually(() => {
      const logged = console_.process.stderr.split('\n').filter((line) => line.includes('"component":"console"'));
      expect(logged.filter((line) => line.includes('answered 503'))).toHaveLength(16);
      return logged;
    });
    expect(lines.filter((line) => line.includes('"level":50'))).toEqual([]);
    await network.arrive();
    await eventually(async () => {
      expect((await browser.get(`${API}/me`)).status).toBe(200);
    });
    expect(browser.cookies.get(SESSION)).toBe(session);
  });
}
