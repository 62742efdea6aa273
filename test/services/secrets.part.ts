import { onceServed } from '@tollgate/testing';
import { call } from '../e2e/deployment';
import { OPERATOR_SECRET, type Replicas } from './deployment';

/** Settings of all services in which a secret changes. */
export const CHANGING = {
  TOLLGATE_FORMER_OPERATOR_SECRET: 'the-former-secret-of-operators-in-tests',
  TOLLGATE_METRICS_TOKEN: 'the-next-token-of-the-scraper',
  TOLLGATE_FORMER_METRICS_TOKEN: 'the-former-token-of-the-scraper',
};

export function secretsTests({ gateway: gateways, auth, metering, billing }: Replicas): void {
  it('lets operators in with its former and its next value, and with no other', async () => {
    for (const { addresses } of gateways) {
      const asked = (secret: string) =>
        onceServed(() => call(`${addresses.operatorUrl}/_operator/v1/tenants`, secret, { method: 'GET' }));
      const secrets = [OPERATOR_SECRET, CHANGING.TOLLGATE_FORMER_OPERATOR_SECRET, CHANGING.TOLLGATE_METRICS_TOKEN];
      const answers = await Promise.all(secrets.map(asked));
      expect(answers.map(({ status }) => status)).toEqual([200, 200, 401]);
    }
  });

  it('lets scrapers in at every service with its former and its next value, and with no other', async () => {
    const { TOLLGATE_METRICS_TOKEN: next, TOLLGATE_FORMER_METRICS_TOKEN: former } = CHANGING;
    for (const { addresses } of [...gateways, ...auth, ...metering, ...billing]) {
      const asked = async (token: string) => {
        const headers = { authorization: `Bearer ${token}` };
        return (await fetch(`${addresses.health}/metrics`, { headers })).status;
      };
      expect(await Promise.all([next, former, OPERATOR_SECRET].map(asked))).toEqual([200, 200, 401]);
    }
  });
}
