import { call, operator } from '../../e2e/deployment';
import { BrowserSession } from '../running/browser';
import { API } from '../running/people';
import type { RunningConsole } from '../running/running-console';

const CLIENT = '203.0.113.9';
const OTHER = '203.0.113.10';
/** More than any limit of tries. */
const TRIES = 25;
const from = (address: string, port: number) => ({ 'x-forwarded-for': `${address}:${port}` });

/** The statuses of some tries of one client, each on a connection of its own, and of one of another client. */
async function tried(attempt: (headers: Record<string, string>) => Promise<number>): Promise<[number[], number]> {
  const statuses: number[] = [];
  for (let port = 40_001; port <= 40_000 + TRIES; port++) statuses.push(await attempt(from(CLIENT, port)));
  return [[...new Set(statuses)], await attempt(from(OTHER, 40_001))];
}

/** Some proxies add the port of the client's connection to its address, which differs with each connection. */
export function proxiedTests(deployed: () => RunningConsole): void {
  it('a client is one client whatever port its proxy names, for all limits of tries', async () => {
    const browser = new BrowserSession(deployed().base);
    const post = async (path: string, body: object, headers: Record<string, string>) =>
      (await browser.post(`${API}/${path}`, body, headers)).status;
    const person = { email: 'nobody@example.com', password: 'a wrong password' };
    expect(await tried((headers) => post('auth/sign-in/email', person, headers))).toEqual([[401, 429], 401]);
    const link = { secret: 'x'.repeat(43) };
    expect(await tried((headers) => post('invitation/look', link, headers))).toEqual([[404, 429], 404]);
    expect(await tried((headers) => post('recovery/look', link, headers))).toEqual([[404, 429], 404]);
    const tenants = `${deployed().operatorUrl}/_operator/v1/tenants`;
    const operatorTry = async (headers: Record<string, string>) => (await call(tenants, 'wrong', { headers })).status;
    expect(await tried(operatorTry)).toEqual([[401, 429], 401]);
  });

  it('the audit log has the address of the client without a port', async () => {
    const { operatorUrl, operatorSecret, managementUrl } = deployed();
    const { post, get } = operator(deployed());
    const { body: made } = await post<{ data: { id: string } }>('/_operator/v1/tenants', { name: 'Acme' });
    const tenant = `/_operator/v1/tenants/${made.data.id}`;
    const scopes = ['keys:write', 'keys:read'];
    const { body: token } = await post<{ data: { token: string } }>(`${tenant}/tokens`, { name: 'ops', scopes });
    const key = { method: 'POST', body: JSON.stringify({ name: 'key' }), headers: from(OTHER, 40_001) };
    expect((await call(`${managementUrl}/keys`, token.data.token, key)).status).toBe(201);
    expect((await call(`${operatorUrl}${tenant}/keys`, operatorSecret, key)).status).toBe(201);
    const { body: log } = await get<{ data: { by: { kind: string; address: string } }[] }>(
      '/_operator/v1/audit?action=key.create',
    );
    expect(log.data.map(({ by }) => [by.kind, by.address])).toEqual([
      ['secret', OTHER],
      ['token', OTHER],
    ]);
  });
}
