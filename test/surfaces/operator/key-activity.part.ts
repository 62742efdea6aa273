import { mintCredential } from '@tollgate/contracts';
import { eventually } from '@tollgate/testing';
import { send } from '../ask';
import { explainTests } from '../explain.part';
import { OPERATOR_SECRET, type Services } from '../services';

export function keyActivityTests(services: Services): void {
  // From a request at the public port to what its owner can read about it.
  const RANGE = {
    from: new Date(Date.now() - 3_600_000).toISOString(),
    to: new Date(Date.now() + 3_600_000).toISOString(),
  };

  /** A new tenant without credit, and its key. */
  async function owner() {
    const { tenantId } = await services.tenant();
    const { value, hash, last4 } = mintCredential('key');
    const { id: keyId } = await services.messages.request('auth.keys.create', { tenantId, name: 'k', hash, last4 });
    await eventually(async () => expect(await services.credentials.lookup(hash)).not.toBeNull());
    const post = (body: unknown) =>
      fetch(`${services.publicUrl}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${value}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
    return { tenantId, keyId, post };
  }

  const CHAT = { model: 'sim-small', max_tokens: 3, messages: [{ role: 'user', content: 'Hello' }] };

  describe('refused requests', () => {
    it('are counted by code for the tenant of the key, and served ones are not', async () => {
      const { tenantId, keyId, post } = await owner();
      const refused = [await post(CHAT), await post(CHAT), await post({ model: 'sim-small' }), await post([])];
      const codes: string[] = [];
      for (const answer of refused) codes.push(((await answer.json()) as { error: { code: string } }).error.code);
      await services.messages.request('billing.credit.add', {
        tenantId,
        amountCents: 100,
        source: 'test',
        ref: tenantId,
      });
      await eventually(async () => {
        const served = await post(CHAT);
        await served.arrayBuffer();
        if (served.status !== 200) codes.push('credit_exhausted');
        expect(served.status).toBe(200);
      });
      await services.reportActivity();
      const expected = new Map<string, number>();
      for (const code of codes) expected.set(code, (expected.get(code) ?? 0) + 1);
      expect(expected.get('credit_exhausted')).toBeGreaterThanOrEqual(2);
      for (const key of [undefined, keyId]) {
        const { points } = await services.messages.request('metering.refusals.series', {
          tenantId,
          ...RANGE,
          step: 'all',
          ...(key && { keyId: key }),
        });
        expect(Object.fromEntries(points.map(({ code, requests }) => [code, requests]))).toEqual(
          Object.fromEntries(expected),
        );
      }
      // Also in a range that ends long after now.
      for (const [from, counted] of [
        ['1970-01-01', Object.fromEntries(expected)],
        ['9999-01-01', {}],
      ] as const) {
        const usage = `${services.operatorUrl}/_operator/v1/tenants/${tenantId}/usage?from=${from}&to=9999-12-31`;
        const { refusals } = (await send(usage, { token: OPERATOR_SECRET })).json.data;
        const counts = refusals.map(({ code, requests }: { code: string; requests: number }) => [code, requests]);
        expect(Object.fromEntries(counts)).toEqual(counted);
      }
    });
  });

  it("a key's last use is the end of its last request, served or refused", async () => {
    const { tenantId, keyId, post } = await owner();
    const lastUsedAt = async () => {
      await services.reportActivity();
      return (await services.messages.request('auth.keys.get', { tenantId, id: keyId })).lastUsedAt;
    };
    expect(await lastUsedAt()).toBeNull();
    const fromMs = Date.now();
    await (await post(CHAT)).arrayBuffer();
    const first = await eventually(async () => {
      const at = await lastUsedAt();
      expect(at).not.toBeNull();
      return Date.parse(at!);
    });
    expect(first).toBeGreaterThanOrEqual(fromMs - 1);
    expect(first).toBeLessThanOrEqual(Date.now());
    await (await post([])).arrayBuffer();
    await eventually(async () => expect(Date.parse((await lastUsedAt())!)).toBeGreaterThan(first));
  });

  describe('the explanation of a complaint', () => explainTests(services));
}
