import { mintCredential } from '@tollgate/contracts';
import { request } from 'node:http';
import { type Answer, managementApi } from '../ask';
import type { Services } from '../services';

/** Limits of calls and of wrong credentials at the public port. */
export function managementRateTests(services: Services): void {
  let token: string;
  const { ask } = managementApi(services, () => token);
  const PER_MINUTE = 600;

  it('after a minute’s calls, a token gets 429 with Retry-After, and other tokens are served', async () => {
    const [busy, other] = [await services.tenant(['keys:read']), await services.tenant(['keys:read'])];
    token = busy.token;
    const statuses: number[] = [];
    let refused: Answer | undefined;
    const began = Date.now();
    // Without the scope, because refused calls count too.
    const call = async () => {
      while (!refused) {
        const answer = await ask('/tokens');
        statuses.push(answer.status);
        if (answer.status === 429) refused = answer;
      }
    };
    await Promise.all(Array.from({ length: 8 }, call));
    // Another call is allowed every 100 ms.
    const refilled = Math.ceil((Date.now() - began) / 100);
    const taken = statuses.filter((status) => status === 403).length;
    expect(taken).toBeGreaterThanOrEqual(PER_MINUTE);
    expect(taken).toBeLessThanOrEqual(PER_MINUTE + refilled);
    expect(refused!.json).toEqual({ error: { code: 'rate_limited', message: expect.any(String) } });
    expect(refused!.headers.get('x-request-id')).toMatch(/^req_/);
    expect(refused!.headers.get('retry-after')).toBe('1');
    expect((await ask('/keys', { token: other.token })).status).toBe(200);
  });

  /** Uses node:http, because `fetch` does not let the caller choose its address. */
  function from(
    localAddress: string,
    path: string,
    credential: string,
  ): Promise<{ status: number; retryAfter: number }> {
    const headers = { authorization: `Bearer ${credential}`, connection: 'close' };
    return new Promise((resolve, reject) => {
      request(`${services.publicUrl}${path}`, { headers, localAddress }, (response) => {
        response.resume();
        const retryAfter = Number(response.headers['retry-after'] ?? 0);
        response.on('end', () => resolve({ status: response.statusCode!, retryAfter }));
      })
        .on('error', reject)
        .end();
    });
  }

  it('after a minute’s wrong credentials an address gets 429 at both APIs, unless one was valid there', async () => {
    const { token: valid } = await services.tenant(['keys:read', 'keys:write']);
    const { json } = await ask('/keys', { token: valid, body: { name: 'k' } });
    const key: string = json.data.key;
    const [MANAGEMENT, INFERENCE] = ['/_api/v1/keys', '/v1/models'];
    const wrong = [
      () => [MANAGEMENT, mintCredential('token').value],
      () => [MANAGEMENT, 'fma_nonsense'],
      () => [INFERENCE, mintCredential('key').value],
      () => [INFERENCE, valid],
    ] as (() => [string, string])[];
    expect((await from('127.0.0.6', INFERENCE, key)).status).toBe(200);
    for (const address of ['127.0.0.5', '127.0.0.6']) {
      for (let time = 0; time < 25; time++)
        for (const one of wrong) expect((await from(address, ...one())).status).toBe(401);
      for (const one of wrong) {
        const { status, retryAfter } = await from(address, ...one());
        expect(status).toBe(429);
        expect(retryAfter).toBeGreaterThan(0);
        expect(retryAfter).toBeLessThanOrEqual(60);
      }
    }
    const status = async (address: string, path: string, value: string) => (await from(address, path, value)).status;
    for (const [path, value] of [
      [INFERENCE, key],
      [MANAGEMENT, valid],
    ] as const) {
      expect(await status('127.0.0.5', path, value)).toBe(429);
      expect(await status('127.0.0.6', path, value)).toBe(200);
      expect(await status('127.0.0.7', path, value)).toBe(200);
    }
    // A request without a credential guesses nothing.
    expect((await ask('/keys', { token: null })).status).toBe(401);
  });
}
