import { newId } from '@tollgate/contracts';
import { eventually } from '@tollgate/testing';
import { call } from '../e2e/deployment';
import { OPERATOR_SECRET, type Replicas } from './deployment';
import { newTenant, operate } from './first-steps';

/** A gateway reports refused requests every 10 s; a charge passes Kafka, metering and billing. */
const EXPLAINED_TIMEOUT_MS = 60_000;

interface Explained {
  data: {
    requests: {
      id: string;
      state: string;
      key: { name: string } | null;
      served: { outcome: string; backend: string; life: object } | null;
      refused: { keyId: string; code: string; by?: object } | null;
      charge: { costNanos: string } | null;
    }[];
  };
}

/** Runs on two gateways, over Kafka and Redis. */
export function explainTests(replicas: Replicas): void {
  const gateways = replicas.gateway;
  const ask = <T>(path: string) =>
    call<T>(`${gateways[1]!.addresses.operatorUrl}/_operator/v1/explain${path}`, OPERATOR_SECRET, { method: 'GET' });
  const send = (key: string, requestId: string) =>
    fetch(`${gateways[0]!.addresses.publicUrl}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', 'x-request-id': requestId },
      body: JSON.stringify({ model: 'sim-large', messages: [{ role: 'user', content: 'Hello' }], max_tokens: 5 }),
    });
  /** The one request with this name, once it is as expected, asked at another gateway. */
  const explained = (name: string, expected: object) =>
    eventually(
      async () => {
        const { status, body } = await ask<Explained>(`/requests/${name}`);
        expect(status).toBe(200);
        expect(body.data.requests).toHaveLength(1);
        expect(body.data.requests[0]).toMatchObject(expected);
        return body.data.requests[0]!;
      },
      { timeoutMs: EXPLAINED_TIMEOUT_MS },
    );

  it('a served and a refused request are explained by another gateway, and the key that was refused', async () => {
    const tenant = await newTenant(gateways[0]!);
    // Each try has a name of its own, because a try that a busy store refuses is kept by its name, too.
    const tried = async (kind: string, key: string, status: number) => {
      let tries = 0;
      return eventually(async () => {
        const name = `${kind}-${++tries}-${tenant.id.slice(-12)}`;
        expect((await send(key, name)).status).toBe(status);
        return name;
      });
    };
    const served = await tried('served', tenant.key, 200);
    const life = { key: [expect.any(Number), expect.any(Number), expect.any(Number)], heldNanos: expect.any(String) };
    const one = await explained(served, {
      state: 'served',
      tenantId: tenant.id,
      key: { name: 'test' },
      served: { outcome: 'complete', backend: expect.any(String), life },
      charge: { costNanos: expect.stringMatching(/^[1-9]/) },
    });
    const foreign = await newTenant(gateways[1]!);
    expect((await ask(`/requests/${one.id}?tenantId=${foreign.id}`)).status).toBe(404);
    expect((await ask(`/requests/${one.id}?tenantId=${tenant.id}`)).status).toBe(200);
    expect((await ask(`/requests/${newId('req')}?tenantId=${tenant.id}`)).status).toBe(404);

    const poor = await operate<{ id: string }>(gateways[0]!, '/tenants', { name: 'Poor' });
    const { id: keyId, key } = await operate<{ id: string; key: string }>(gateways[0]!, `/tenants/${poor.id}/keys`, {
      name: 'poor',
    });
    const refused = await tried('refused', key, 402);
    await explained(refused, {
      state: 'refused',
      served: null,
      refused: { keyId, code: 'credit_exhausted', by: { what: 'credit' } },
      charge: null,
    });
    const { body } = await ask<{ data: { admitted: boolean; obstacles: object[]; refused: object[] } }>(
      `/keys/${keyId}`,
    );
    expect(body.data).toMatchObject({ admitted: false, obstacles: [{ what: 'credit' }] });
    expect(body.data.refused).toContainEqual(expect.objectContaining({ callerRequestId: refused }));
  });
}
