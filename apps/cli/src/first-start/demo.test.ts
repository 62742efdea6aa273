import { createDemo } from './demo';
import { Failure } from '../command/failure';
import type { OperatorClient } from '../command/operator-client';

/** An operator API in memory. It does each call, but answers `unavailable` the first time. */
function hesitant(): { client: OperatorClient; names: string[]; refs: Set<string> } {
  const names: string[] = [];
  const refs = new Set<string>();
  const heard = new Set<string>();
  const answer = <T>(call: string, data: T): Promise<{ data: T }> => {
    if (heard.has(call)) return Promise.resolve({ data });
    heard.add(call);
    return Promise.reject(new Failure('Try again.', 'unavailable'));
  };
  const client = {
    get: (path: string) => {
      const tenants = names.map((name, i) => ({ id: `ten_${i}`, name }));
      return answer<object>(path, path.startsWith('/tenants?') ? tenants : { spendableCents: 1 });
    },
    post: (path: string, body: { name: string; ref: string }) => {
      if (path === '/tenants') names.push(body.name);
      if (path.endsWith('/credit')) refs.add(body.ref);
      return answer(path, { id: 'ten_0', name: body.name, key: 'the key', token: 'the token' });
    },
  };
  return { client: client as unknown as OperatorClient, names, refs };
}

describe('the creation of the demo tenant', () => {
  it('waits for services that have only just started, and creates one tenant, with its credit once', async () => {
    const { client, names, refs } = hesitant();
    expect(await createDemo(client)).toEqual({ tenantId: 'ten_0', key: 'the key', token: 'the token' });
    expect([names, [...refs]]).toEqual([['demo'], ['demo']]);
    expect(await createDemo(client)).toBeNull();
  });

  it('leaves a tenant alone that another process has made meanwhile', async () => {
    const tenants: object[] = [];
    const asked: string[] = [];
    const client = {
      get: () => Promise.resolve({ data: tenants }),
      post: (path: string) => {
        asked.push(path);
        tenants.push({ id: 'ten_0', name: 'Acme' });
        return Promise.reject(new Failure('Try again.', 'unavailable'));
      },
    } as unknown as OperatorClient;
    expect(await createDemo(client)).toBeNull();
    expect(asked).toEqual(['/tenants']);
  });

  it('does not wait after a refusal', async () => {
    const refusal = new Failure('The operator secret was refused.', 'invalid_secret');
    const client = { get: () => Promise.reject(refusal) } as unknown as OperatorClient;
    await expect(createDemo(client)).rejects.toBe(refusal);
  });
});
