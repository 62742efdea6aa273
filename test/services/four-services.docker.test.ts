import { eventually } from '@tollgate/testing';
import { call } from '../e2e/deployment';
import { OPERATOR_SECRET, useDeployment } from './deployment';
import type { ServiceProcess } from './service-process';

const deployment = useDeployment();
let gateway: ServiceProcess;
let services: ServiceProcess[];

beforeAll(async () => {
  services = await Promise.all(
    (['auth', 'metering', 'billing', 'gateway'] as const).map((app) => deployment.start(app)),
  );
  gateway = services[3]!;
});

interface Tenant {
  id: string;
  key: string;
  token: string;
}

async function operator<T>(path: string, body: unknown): Promise<T> {
  const { status, body: answer } = await call<{ data: T }>(
    `${gateway.addresses.operatorUrl}/_operator/v1${path}`,
    OPERATOR_SECRET,
    { method: 'POST', body: JSON.stringify(body) },
  );
  expect([status, answer]).toEqual([201, answer]);
  return answer.data;
}

async function newTenant(): Promise<Tenant> {
  const { id } = await operator<{ id: string }>('/tenants', { name: 'Acme' });
  const { key } = await operator<{ key: string }>(`/tenants/${id}/keys`, { name: 'test' });
  const { token } = await operator<{ token: string }>(`/tenants/${id}/tokens`, {
    name: 'test',
    scopes: ['usage:read', 'billing:read'],
  });
  await operator(`/tenants/${id}/credit`, { amountCents: 1_000, source: 'manual', ref: id });
  return { id, key, token };
}

function chat(key: string, maxTokens: number): Promise<{ status: number; body: { usage: { total_tokens: number } } }> {
  const body = { model: 'sim-small', messages: [{ role: 'user', content: 'Hello' }], max_tokens: maxTokens };
  return call(`${gateway.addresses.publicUrl}/v1/chat/completions`, key, {
    method: 'POST',
    body: JSON.stringify(body),
  });
}

it('serves a request of a new tenant, meters it, debits it, and every process stops cleanly', async () => {
  const tenant = await newTenant();
  const answer = await eventually(
    async () => {
      const got = await chat(tenant.key, 4_000);
      expect(got.status).toBe(200);
      return got;
    },
    { timeoutMs: 10_000 },
  );
  const management = `${gateway.addresses.publicUrl}/_api/v1`;
  await eventually(
    async () => {
      const usage = await call<{ data: { totals: { requests: number; totalTokens: number; costCents: number } } }>(
        `${management}/usage`,
        tenant.token,
      );
      expect(usage.body.data.totals).toMatchObject({ requests: 1, totalTokens: answer.body.usage.total_tokens });
    },
    { timeoutMs: 10_000 },
  );
  for (const service of services) {
    service.child.kill('SIGTERM');
    expect([service.app, await service.exited()]).toEqual([service.app, 0]);
  }
});
