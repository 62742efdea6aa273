import { eventually } from '@tollgate/testing';
import { askOperator, send } from './ask';
import type { Services } from './services';
import { runTollgate, useDataDirectory } from './tollgate-process';

/** From the end of a request to its charge in the books. */
export const CHARGED = { timeoutMs: 30_000 };
/** The prompt of all requests. No explanation may have it. */
export const WORDS = 'the secret words of a prompt';

/** Customers, their requests, and how an operator asks about these. */
export function useComplaints(services: Services) {
  const directory = useDataDirectory(services);
  const ask = askOperator(services);
  const tollgate = async (...args: string[]) => {
    const { code, stdout, stderr } = await runTollgate(args, { TOLLGATE_DATA_DIR: directory.path });
    return `${code} ${stdout}${stderr}`.trim();
  };
  /** The explanation of a request, once metering has it. */
  const explained = async (name: string, count = 1, query = '') => {
    await Promise.all([services.flushUsage(), services.reportActivity()]);
    return eventually(async () => {
      const { status, json } = await ask(`/explain/requests/${name}${query}`);
      expect([status, json.data?.requests.length]).toEqual([200, count]);
      expect(JSON.stringify(json)).not.toContain(WORDS);
      return json.data.requests;
    }, CHARGED);
  };

  /** A tenant with credit and a key that is in force. */
  async function customer(plan = 'default') {
    const tenant = (await ask('/tenants', { body: { name: 'Acme', plan } })).json.data;
    await ask(`/tenants/${tenant.id}/credit`, { body: { amountCents: 1_000, ref: 'first' } });
    const key = (await ask(`/tenants/${tenant.id}/keys`, { body: { name: 'production' } })).json.data;
    const body = { model: 'sim-large', messages: [{ role: 'user', content: WORDS }], max_tokens: 20 };
    const chat = (more: object = {}, headers: Record<string, string> = {}) =>
      send(`${services.publicUrl}/v1/chat/completions`, { token: key.key, body: { ...body, ...more }, headers });
    return { tenantId: tenant.id as string, keyId: key.id as string, key: key.key as string, body, chat };
  }

  return { ask, tollgate, explained, customer };
}
