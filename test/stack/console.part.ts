import { eventually } from '@tollgate/testing';
import { BrowserSession } from '../console/running/browser';
import { API, join, secretOf } from '../console/running/people';
import { docker, type Stack } from './stack-process';

const BACK_TIMEOUT_MS = 60_000;
const NOTICE_TIMEOUT_MS = 20_000;

/** The console as a service behind the load balancer. `printed`: the ready lines of the first start. */
export function consoleTests(
  stack: Stack,
  of: () => { printed: string; tenantId: string; ask: () => Promise<unknown>; balance: () => Promise<number> },
): void {
  const linkIn = (printed: string) => /http:\/\/localhost:\d+\/console\/invitation#[\w-]{43}/.exec(printed)?.[0] ?? '';
  let operator: BrowserSession;

  it('the printed link makes the first operator, who reads the demo tenant through the load balancer', async () => {
    const { printed, tenantId } = of();
    const link = linkIn(printed);
    const { origin } = new URL(link);
    expect(printed).toContain(`Console         ${origin}/console\n`);
    operator = await join(origin, link, 'operator@example.com', 'Grace');
    const { json: me } = await operator.get(`${API}/me`);
    expect(me).toMatchObject({ isOperator: true, inferenceUrl: `${origin}/v1` });
    expect(me.tenants).toEqual([expect.objectContaining({ id: tenantId, role: 'operator' })]);
    await eventually(async () => {
      const { status, json } = await operator.get(`${API}/tenants/${tenantId}/overview`);
      expect([status, json?.credit?.balanceCents]).toEqual([200, await of().balance()]);
    });
    const page = await operator.get('/console/');
    const [script = ''] = /\/console\/assets\/[\w.-]+\.js/.exec(page.text) ?? [];
    expect((await operator.get(script)).headers.get('content-type')).toMatch(/^text\/javascript/);
  });

  it('the command creates a link for another operator, with a row in the audit log', async () => {
    const { id, link } = await stack.tollgate<{ id: string; link: string }>('user', 'invite', '--operator');
    const offer = await operator.post(`${API}/invitation/look`, { secret: secretOf(link) });
    expect(offer.json).toMatchObject({ operator: true, tenantName: null });
    const rows = await stack.tollgate<{ target: string; by: { kind: string } }[]>(
      'audit',
      '--action',
      'operator.invite',
    );
    expect(rows[0]).toMatchObject({ target: id, by: { kind: 'secret' } });
  });

  it('the audit log of the console names the address of the client, not that of the load balancer', async () => {
    const { json } = await operator.get(`${API}/sessions`);
    const [container = ''] = await stack.containers('haproxy');
    const own = Object.values(
      (JSON.parse(await docker('inspect', container)) as { NetworkSettings: { Networks: object } }[])[0]!
        .NetworkSettings.Networks,
    ).map(({ IPAddress: address }: { IPAddress: string }) => address);
    expect(json.data[0].address).toMatch(/^[\d.]+$/);
    expect(own).not.toContain(json.data[0].address);
  });

  it('while the console is down, its paths are 503 in its envelope, and inference goes on', async () => {
    await stack.compose('kill', 'console');
    await eventually(
      async () => {
        const { status, json, headers } = await operator.sendOnce('GET', '/console/');
        expect([status, json?.error.code]).toEqual([503, 'unavailable']);
        expect(headers.get('x-request-id')).toMatch(/^req_/);
      },
      { timeoutMs: NOTICE_TIMEOUT_MS },
    );
    await of().ask();
    await stack.compose('start', 'console');
    await eventually(async () => expect((await operator.get(`${API}/me`)).status).toBe(200), {
      timeoutMs: BACK_TIMEOUT_MS,
    });
  });
}
