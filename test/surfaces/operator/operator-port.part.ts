import { Health } from '@tollgate/runtime';
import { request } from 'node:http';
import { createOperatorApp } from '../../../apps/gateway/src';
import { OPERATOR_SECRET, type Services } from '../services';

const METRICS_TOKEN = 'token-of-the-scraper';
const FORMER_SECRET = 'the-operators-former-secret-in-tests';
const FORMER_TOKEN = 'former-token-of-the-scraper';
const WRONG = 'a-wrong-secret-of-somebody';

interface Given {
  secret?: string;
  host?: string;
  from?: string;
  url?: string;
}
interface Got {
  status: number;
  headers: Record<string, unknown>;
  body: string;
}

export function operatorPortTests(services: Services): void {
  /** Uses node:http, because `fetch` does not let the caller choose the Host and the local address. */
  function ask(path: string, { secret, host, from, url = services.operatorUrl }: Given = {}): Promise<Got> {
    const headers = { ...(secret && { authorization: `Bearer ${secret}` }), ...(host && { host }) };
    return new Promise((resolve, reject) => {
      const asked = request(`${url}${path}`, { headers, ...(from && { localAddress: from }) }, (response) => {
        let body = '';
        response.on('data', (part: Buffer) => (body += part.toString()));
        response.on('end', () => resolve({ status: response.statusCode!, headers: response.headers, body }));
      });
      asked.on('error', reject);
      asked.end();
    });
  }
  const TENANTS = '/_operator/v1/tenants';
  /** Endpoints of different modules. */
  const GUARDED = [TENANTS, '/_operator/v1/audit', '/_operator/v1/backends'];

  describe('wrong secrets', () => {
    it('get 429 after ten in a minute at any endpoint; the right one works from other and known addresses', async () => {
      const before = await ask(TENANTS, { secret: OPERATOR_SECRET, from: '127.0.0.3' });
      expect(before.status).toBe(200);
      for (const from of ['127.0.0.2', '127.0.0.3']) {
        for (let time = 0; time < 10; time++)
          expect((await ask(GUARDED[time % GUARDED.length]!, { secret: WRONG, from })).status).toBe(401);
        const { status, headers, body } = await ask(TENANTS, { secret: WRONG, from });
        expect([status, JSON.parse(body).error.code]).toEqual([429, 'too_many_attempts']);
        expect(Number(headers['retry-after'])).toBeGreaterThan(0);
        expect(Number(headers['retry-after'])).toBeLessThanOrEqual(60);
      }
      expect((await ask(TENANTS, { secret: OPERATOR_SECRET, from: '127.0.0.2' })).status).toBe(429);
      expect((await ask(TENANTS, { secret: OPERATOR_SECRET, from: '127.0.0.3' })).status).toBe(200);
      expect((await ask(TENANTS, { secret: OPERATOR_SECRET, from: '127.0.0.4' })).status).toBe(200);
    });
  });

  describe('the Host', () => {
    it('that is an unknown name is refused on every path but the probes', async () => {
      for (const path of [TENANTS, '/metrics', '/_operator/v1/openapi.json', '/nothing']) {
        const { status, body } = await ask(path, { secret: OPERATOR_SECRET, host: 'evil.example:8081' });
        expect([status, JSON.parse(body).error.code]).toEqual([421, 'misdirected_request']);
      }
      for (const path of ['/livez', '/readyz'])
        expect((await ask(path, { host: 'gateway.internal' })).status).toBe(200);
      expect((await ask(TENANTS, { secret: OPERATOR_SECRET, host: 'localhost:8081' })).status).toBe(200);
    });
  });

  describe('with metrics tokens and a configured name', () => {
    it('/metrics requires a token, the former ones still work and are counted, and the name is accepted', async () => {
      const health = new Health();
      health.state = 'serving';
      const { messages, admission } = services;
      const secrets = [OPERATOR_SECRET, FORMER_SECRET];
      const metricsTokens = [METRICS_TOKEN, FORMER_TOKEN];
      const options = { secrets, health, hosts: ['ops.internal'], metricsTokens };
      const app = await createOperatorApp({ messages, config: {} as never, admission }, options);
      try {
        await app.listen(0, '127.0.0.1');
        const url = await app.getUrl();
        for (const secret of [undefined, WRONG, OPERATOR_SECRET, FORMER_SECRET]) {
          const { status, headers } = await ask('/metrics', { url, ...(secret && { secret }) });
          expect([status, headers['www-authenticate']]).toEqual([401, 'Bearer']);
        }
        for (const secret of metricsTokens) {
          const { status, body } = await ask('/metrics', { url, secret, host: 'ops.internal' });
          expect([status, body]).toEqual([200, expect.stringContaining('# TYPE tollgate_')]);
        }
        for (const secret of secrets) expect((await ask(TENANTS, { url, secret })).status).toBe(200);
        for (const secret of [WRONG, METRICS_TOKEN]) expect((await ask(TENANTS, { url, secret })).status).toBe(401);
        const { body } = await ask('/metrics', { url, secret: METRICS_TOKEN });
        for (const secret of ['operator', 'metrics'])
          expect(body).toContain(`tollgate_former_secret_requests_total{secret="${secret}"} 1\n`);
        expect((await ask('/readyz', { url })).status).toBe(200);
      } finally {
        await app.close();
      }
    });
  });
}
