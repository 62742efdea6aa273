import { eventually } from '@tollgate/testing';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { writeConfig } from '../../e2e/fixtures';
import { send } from '../ask';
import { hostileBodies } from './hostile-bodies.part';
import { hostileHttp } from './hostile-http.part';
import { OPERATOR_SECRET, useServices } from '../services';

/** Credentials of a tenant with credit. */
export interface Target {
  token: string;
  /** For invalid requests, which are limited. */
  key: string;
  /** For valid requests. */
  goodKey: string;
  tenantId: string;
}

// Real: all services, the stores and the ports. Each part sends what no client would.
const directory = mkdtempSync(join(tmpdir(), 'tollgate-hostile-'));
const services = useServices({}, () => writeConfig(directory));
const target = {} as Target;

beforeAll(async () => {
  const { tenantId, token } = await services.tenant();
  const credit = { tenantId, amountCents: 100_000, source: 'manual', ref: 'hostile' };
  await services.messages.request('billing.credit.add', credit);
  const key = async (name: string) =>
    (await send(`${services.publicUrl}/_api/v1/keys`, { token, body: { name } })).json.data.key as string;
  Object.assign(target, { tenantId, token, key: await key('hostile'), goodKey: await key('good') });
  await eventually(async () => expect((await chat()).status).toBe(200));
});

afterAll(() => rmSync(directory, { recursive: true }));

const chat = () =>
  send(`${services.publicUrl}/v1/chat/completions`, {
    token: target.goodKey,
    body: { model: 'sim-small', messages: [{ role: 'user', content: 'Hello' }], max_tokens: 1 },
  });

hostileHttp(services, target);
hostileBodies(services, target);

describe('after all of it', () => {
  it('no body of a request was executed as a request', async () => {
    const keys = await send(`${services.publicUrl}/_api/v1/keys?limit=200`, { token: target.token });
    expect(keys.status).toBe(200);
    expect(keys.text).not.toContain('smuggled');
    const tenants = await send(`${services.operatorUrl}/_operator/v1/tenants?limit=200`, { token: OPERATOR_SECRET });
    expect(tenants.status).toBe(200);
    expect(tenants.text).not.toContain('smuggled');
  });

  it('requests are served, no hold is left, and the books are what the usage says', async () => {
    expect((await chat()).status).toBe(200);
    await services.flushUsage();
    await eventually(
      async () => {
        const asked = { token: OPERATOR_SECRET, method: 'POST' };
        const { json } = await send(`${services.operatorUrl}/_operator/v1/reconcile`, asked);
        expect(json.data.differences).toEqual([]);
      },
      { timeoutMs: 60_000, everyMs: 500 },
    );
    const [snapshot] = await services.admission.snapshot({ tenantId: target.tenantId, limit: 1 });
    expect(snapshot!.pendingHolds).toBe(0);
  });
});
