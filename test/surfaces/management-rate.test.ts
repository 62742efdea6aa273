import { eventually } from '@tollgate/testing';
import { managementApi } from './ask';
import { useServices } from './services';

const services = useServices();
let token: string;
const { ask, expectRefusal } = managementApi(services, () => token);
const PER_MINUTE = 600;

it('takes a minute’s worth of calls of a token, then says when to call again; other tokens are not concerned', async () => {
  const [busy, other] = [await services.tenant(['keys:read']), await services.tenant(['keys:read'])];
  token = busy.token;
  const statuses: number[] = [];
  const began = Date.now();
  // Without the scope: what is refused counts too.
  const call = async () => {
    while (!statuses.includes(429)) statuses.push((await ask('/tokens')).status);
  };
  await Promise.all(Array.from({ length: 8 }, call));
  const refilled = Math.ceil((Date.now() - began) / 100);
  const taken = statuses.filter((status) => status === 403).length;
  expect(taken).toBeGreaterThanOrEqual(PER_MINUTE);
  expect(taken).toBeLessThanOrEqual(PER_MINUTE + refilled);
  // One is free again each 100 ms.
  const refused = await eventually(() => expectRefusal('/tokens', {}, 429, 'rate_limited'), { everyMs: 1 });
  expect(refused.headers.get('retry-after')).toBe('1');
  expect((await ask('/keys', { token: other.token })).status).toBe(200);
});
