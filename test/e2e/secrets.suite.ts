import { onceServed } from '@tollgate/testing';
import { call, operator, type Deployment } from './deployment';
import { answered, complete, createTenant } from './fixtures';
import { reconciled } from './reconcile';

/** For a deployment that logs everything (TOLLGATE_LOG_LEVEL=trace). */
export function secretsSuite(tollgate: Deployment): void {
  describe('secrets and prompts', () => {
    it('are never in a log line, a table or a message', async () => {
      const { ready } = tollgate;
      await tollgate.keepMessages();
      const tenant = await createTenant(ready, 1_000);
      const token = ready.demo!.token;
      const prompt = 'an-unmistakable-prompt-4711';
      const ask = (key: string, more: object = {}) =>
        onceServed(() => complete(ready, key, { messages: [{ role: 'user', content: prompt }], ...more }));
      const answers = [
        await ask(tenant.key),
        await ask(tenant.key, { stream: true }),
        await ask(tenant.key, { temperature: 9 }),
        await ask(`${tenant.key}x`),
      ];
      expect(answers.map((answer) => answer.status)).toEqual([200, 200, 400, 401]);
      const another = { method: 'POST', body: JSON.stringify({ name: 'another' }) };
      const issued = await answered(
        () => call<{ data: { id: string; key: string } }>(`${ready.managementUrl}/keys`, token, another),
        201,
      );
      const tokens = `/_operator/v1/tenants/${tenant.id}/tokens`;
      const minted = await answered(
        () => operator(ready).post<{ data: { token: string } }>(tokens, { name: 't', scopes: ['keys:read'] }),
        201,
      );
      await call(`${ready.managementUrl}/usage`, token);
      await call(`${ready.managementUrl}/keys/${issued.data.id}`, token, { method: 'DELETE' });
      await call(`${ready.managementUrl}/keys`, tenant.key);
      // Places where people put a credential by mistake.
      const pasted = [tenant.key, token, minted.data.token];
      for (const secret of pasted) {
        const escaped = secret.replace('-', '%2D').replace('_', '%5F');
        for (const path of [`/models?key=${secret}`, `/${secret}`, `/models/${escaped}`, `/models#${secret}`])
          await call(`${ready.inferenceUrl}${path}`, secret);
        for (const path of [`/keys/${secret}`, `/keys?token=${secret}`, `/${secret}/keys`])
          await call(`${ready.managementUrl}${path}`, secret);
        for (const path of [`/tenants/${secret}`, `/tenants?after=${secret}`, `/reconcile/${secret}`, `/${secret}`])
          await call(`${ready.operatorUrl}/_operator/v1${path}`, ready.operatorSecret);
        for (const [path, body] of [
          ['keys', { name: 'pasted' }],
          ['tokens', { name: 'pasted', scopes: ['keys:read'] }],
          ['credit', { amountCents: 1, ref: 'pasted' }],
          ['credit/refund', { amountCents: 1, ref: 'pasted' }],
        ] as const) {
          const { status } = await operator(ready).post(`/_operator/v1/tenants/${secret}/${path}`, body);
          expect(status).toBe(404);
        }
      }
      await reconciled(ready);

      const secrets = [
        tenant.key,
        `${tenant.key}x`,
        ready.demo!.key,
        token,
        issued.data.key,
        minted.data.token,
        ready.operatorSecret,
        prompt,
      ];
      expect(secrets.every((secret) => secret.length > 15)).toBe(true);
      const [rows, log] = await Promise.all([tollgate.contents(), tollgate.logs()]);
      expect(rows.length).toBeGreaterThan(20);
      for (const answer of answers.slice(0, 2)) {
        // The contents have the messages about these requests: to metering, to billing and back.
        const about = rows.filter((row) => row.startsWith('message') && row.includes(answer.requestId));
        expect(about.length).toBeGreaterThanOrEqual(3);
      }
      for (const secret of [...secrets, ...pasted.map((one) => one.slice(8))]) {
        expect(log.includes(secret)).toBe(false);
        expect(rows.filter((row) => row.includes(secret))).toEqual([]);
      }
      // The log has these requests.
      expect(log).toContain(answers[0]!.requestId);
    });
  });
}
