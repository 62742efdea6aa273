import { mintCredential } from '@tollgate/contracts';
import type { Caller, GatewayUnderTest } from '../use-gateway';

/** The listener of the server beside the routes of Fastify. */
export function shortcutTests(gateway: GatewayUnderTest): void {
  /** A request with the first type is answered by the server's listener, with the second through Fastify. */
  const [USUAL, OTHER] = ['application/json', 'application/json; charset=UTF-8; profile=x'];
  const MESSAGES = [{ role: 'user', content: 'Hello there' }];
  const stranger = { key: mintCredential('key').value } as Caller;

  /** The answer without what differs between any two requests. */
  async function answer(path: string, type: string, body: unknown, caller: Caller, init: RequestInit = {}) {
    const response = await gateway.post(path, body, caller, {
      ...init,
      headers: { ...init.headers, 'content-type': type, authorization: `Bearer ${caller.key}` },
    });
    const text = await response.text();
    return {
      status: response.status,
      headers: [...response.headers.keys()].filter((name) => name !== 'date'),
      id: response.headers.get('x-request-id')!.replace(/^req_.*/, 'req_'),
      body: text.replace(/("id":"\w+-)\w+"/g, '$1"').replace(/"created":\d+/g, '"created":0'),
    };
  }

  describe('an inference request in its usual form', () => {
    it.each([
      ['a chat', 200, '/chat/completions', { model: 'small', messages: MESSAGES, max_tokens: 5 }],
      ['a stream', 200, '/chat/completions', { model: 'small', messages: MESSAGES, max_tokens: 5, stream: true }],
      ['a completion', 200, '/completions', { model: 'small', prompt: 'Hello', max_tokens: 5 }],
      ['an invalid body', 400, '/chat/completions', { model: 'small', messages: 'none' }],
      ['an unknown model', 404, '/chat/completions', { model: 'none', messages: MESSAGES }],
      ['an unknown path', 404, '/chat/completion', { model: 'small', messages: MESSAGES }],
      ['a path with a query', 200, '/chat/completions?a=b', { model: 'small', messages: MESSAGES, max_tokens: 5 }],
    ])('is answered as any other: %s', async (_, status, path, body) => {
      const caller = await gateway.caller();
      for (const prefix of ['/v1', '']) {
        for (const headers of [{}, { 'x-request-id': 'mine-1' }]) {
          const usual = await answer(prefix + path, USUAL, body, caller, { headers });
          expect(usual).toEqual(await answer(prefix + path, OTHER, body, caller, { headers }));
          expect(usual.status).toBe(status);
        }
      }
    });

    it('is refused as any other: without a valid key, or with another method', async () => {
      const body = { model: 'small', messages: MESSAGES };
      const caller = await gateway.caller();
      for (const [from, method, status] of [
        [stranger, 'POST', 401],
        [caller, 'PUT', 405],
      ] as const) {
        const [usual, other] = await Promise.all(
          [USUAL, OTHER].map((type) => answer('/v1/chat/completions', type, body, from, { method })),
        );
        expect(usual).toEqual(other);
        expect(usual!.status).toBe(status);
      }
    });
  });
}
