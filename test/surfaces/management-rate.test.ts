import { type Answer, managementApi } from './ask';
import { useServices } from './services';

const services = useServices();
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
