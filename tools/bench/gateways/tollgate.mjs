// What both forms of Tollgate are given: models in front of the bench's backend, limits that nothing reaches, and a
// tenant with credit.
import { answered } from '../machine/processes.mjs';

const USABLE_TIMEOUT_MS = 60_000;
const LIMITS = '{ requestsPerMinute: 100000000, tokensPerMinute: 1000000000000, concurrency: 100000 }';

/** The limits in the tollgate.yaml that comes with it. */
const SHIPPED_LIMITS = {
  tenant: '{ requestsPerMinute: 6000, tokensPerMinute: 10000000, concurrency: 512 }',
  key: '{ requestsPerMinute: 600, tokensPerMinute: 1000000, concurrency: 64 }',
};
/** `sim` and `sim-small` are for the hostile bodies, which the simulator answers. */
const MODELS = ['bench', 'bench-paced', 'bench-slow', 'sim', 'sim-small'];

/** A tollgate.yaml. */
export const configOf = (backendUrl) => `models:
${MODELS.map(
  (id) => `  - { id: ${id}, kind: chat, contextTokens: ${id === 'sim-small' ? 8192 : 100000}, maxOutputTokens: 4096,
      passthrough: [simulator, metadata], price: { input: '5', output: '20' }, backends: [{ url: '${backendUrl}' }] }`,
).join('\n')}
plans:
  - { id: default, limits: ${LIMITS}, profiles: [{ id: default, limits: ${LIMITS} }] }
  - { id: shipped, limits: ${SHIPPED_LIMITS.tenant}, profiles: [{ id: default, limits: ${SHIPPED_LIMITS.key} }] }
`;

/**
 * A new tenant, with credit for more than any run takes and a key.
 * @param {{ operatorUrl: string, operatorSecret: string }} operator
 * @param {{ name?: string, plan?: string, token?: boolean }} [options] `token`: with a management token too
 * @returns {Promise<{ tenantId: string, key: string, keyId: string, token?: string }>}
 */
export async function newTenant(
  { operatorUrl, operatorSecret },
  { name = 'bench', plan = 'default', token = false } = {},
) {
  const ask = async (path, body) => {
    const answer = await fetch(`${operatorUrl}/_operator/v1${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${operatorSecret}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
    return (await answer.json()).data;
  };
  // The services may have begun this instant.
  const create = (path, body) => answered(() => ask(path, body), { timeoutMs: USABLE_TIMEOUT_MS });
  const { id } = await create('/tenants', { name, plan });
  await create(`/tenants/${id}/credit`, { amountCents: 1_000_000_000, source: 'manual', ref: 'bench' });
  const { key, id: keyId } = await create(`/tenants/${id}/keys`, { name });
  if (!token) return { tenantId: id, key, keyId };
  const scopes = ['usage:read', 'billing:read'];
  return { tenantId: id, key, keyId, token: (await create(`/tenants/${id}/tokens`, { name, scopes })).token };
}

/** The headers of a tenant whose credit has arrived: it has made a request. */
export async function usableHeaders(url, { key }) {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  const body = JSON.stringify({ model: 'bench', messages: [{ role: 'user', content: 'Hello' }], max_tokens: 1 });
  await answered(
    async () => {
      const answer = await fetch(`${url}/chat/completions`, { method: 'POST', headers, body });
      const text = await answer.text();
      if (!answer.ok) throw new Error(`${answer.status} ${text}`);
    },
    { timeoutMs: USABLE_TIMEOUT_MS },
  );
  return { authorization: headers.authorization };
}
