import { eventually, onceServed } from '@tollgate/testing';
import { call } from '../e2e/deployment';
import { OPERATOR_SECRET } from './deployment';
import type { ServiceProcess } from './service-process';

const USABLE_TIMEOUT_MS = 60_000;

export interface Tenant {
  id: string;
  key: string;
  token: string;
}

/** Sends a safe POST to the operator API of this gateway. Rejects with the answer unless it is 201. */
export async function operate<T>(gateway: ServiceProcess, path: string, body: unknown): Promise<T> {
  const url = `${gateway.addresses.operatorUrl}/_operator/v1${path}`;
  const request = { method: 'POST', body: JSON.stringify(body) };
  const { status, body: answer } = await onceServed(() => call<{ data: T }>(url, OPERATOR_SECRET, request));
  if (status !== 201) throw new Error(`${path} was answered ${status}: ${JSON.stringify(answer)}`);
  return answer.data;
}

/** Creates a tenant with a key, a token and usable credit. It has sent one small request. */
export async function newTenant(gateway: ServiceProcess, { amountCents = 1_000 } = {}): Promise<Tenant> {
  const { id } = await operate<{ id: string }>(gateway, '/tenants', { name: 'Acme' });
  const { key } = await operate<{ key: string }>(gateway, `/tenants/${id}/keys`, { name: 'test' });
  const scopes = ['usage:read', 'billing:read'];
  const { token } = await operate<{ token: string }>(gateway, `/tenants/${id}/tokens`, { name: 'test', scopes });
  await operate(gateway, `/tenants/${id}/credit`, { amountCents, source: 'manual', ref: id });
  await eventually(async () => expect((await chat(gateway, key, { max_tokens: 1 })).status).toBe(200), {
    timeoutMs: USABLE_TIMEOUT_MS,
  });
  return { id, key, token };
}

/** One plain chat with the simulator. */
export function chat(gateway: ServiceProcess, key: string, body: Record<string, unknown> = {}) {
  return call<{ usage: { total_tokens: number } }>(`${gateway.addresses.publicUrl}/v1/chat/completions`, key, {
    method: 'POST',
    body: JSON.stringify({
      model: 'sim-large',
      messages: [{ role: 'user', content: 'Hello' }],
      max_tokens: 100,
      ...body,
    }),
  });
}
