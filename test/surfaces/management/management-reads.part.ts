import { newId, SCOPES } from '@tollgate/contracts';
import { eventually } from '@tollgate/testing';
import { ISO, managementApi } from '../ask';
import type { Services } from '../services';

/** What the management API shows. */
export function managementReadsTests(services: Services): void {
  let acme: { tenantId: string; token: string; tokenId: string };
  beforeAll(async () => {
    acme = await services.tenant();
  });
  const { ask, expectRefusal } = managementApi(services, () => acme.token);

  describe('GET /tokens', () => {
    it('lists the calling token with its last use, without a value or a hash', async () => {
      const { token, tokenId } = await services.tenant();
      const started = Date.now();
      const row = await eventually(
        async () => {
          const { json } = await ask('/tokens', { token });
          expect(json).toEqual({ data: [expect.anything()], nextCursor: null });
          expect(json.data[0].lastUsedAt).not.toBeNull();
          return json.data[0];
        },
        { timeoutMs: 10_000, everyMs: 200 },
      );
      expect(row).toEqual({
        id: tokenId,
        name: 'test',
        last4: token.slice(-4),
        scopes: [...SCOPES],
        createdAt: expect.stringMatching(ISO),
        lastUsedAt: expect.stringMatching(ISO),
        expiresAt: null,
        revokedAt: null,
      });
      expect(Date.parse(row.lastUsedAt)).toBeGreaterThanOrEqual(started - 1);
    });
  });

  describe('a query', () => {
    it('with a parameter that the endpoint does not take is refused, so it cannot name another tenant', async () => {
      const other = await services.tenant();
      for (const path of ['/keys', '/tokens', '/billing', '/usage']) {
        const refused = await expectRefusal(`${path}?tenantId=${other.tenantId}`, {}, 400, 'invalid_parameter');
        expect(refused.json.error.message).toMatch(/^"tenantId" is not a parameter of this endpoint. It takes: \w+/);
      }
      const asked = { method: 'DELETE' };
      const none = await expectRefusal(`/keys/${newId('key')}?force=1`, asked, 400, 'invalid_parameter');
      expect(none.json.error.message).toContain('It takes none.');
    });

    it('takes numbers in decimal only, and each parameter once', async () => {
      for (const limit of ['0x10', '1e1', '+5', '%205', '', '5.0', '0', '201', '5&limit=6'])
        await expectRefusal(`/keys?limit=${limit}`, {}, 400, 'invalid_parameter');
      expect((await ask('/keys?limit=5')).status).toBe(200);
    });

    it('takes any ISO 8601 date as the start of usage', async () => {
      for (const from of ['2026-10-31', '20261031', '2026-10', '2026-W44', '2026-304', '2026-10-31T10:30:00+02:00'])
        expect([from, (await ask(`/usage?from=${from}&to=2027-01-01`)).status]).toEqual([from, 200]);
    });
  });

  describe('GET /billing', () => {
    it('returns the balance, pages of entries, newest first, and invoices, in the documented fields only', async () => {
      const { tenantId, token } = await services.tenant();
      for (const [ref, amountCents] of [
        ['a', 1_000],
        ['b', 25],
      ] as const) {
        await services.messages.request('billing.credit.add', { tenantId, amountCents, source: 'manual', ref });
      }
      const { status, json } = await ask('/billing?limit=1', { token });
      expect(status).toBe(200);
      expect(json).toEqual({
        data: {
          balanceCents: 1_025,
          entries: [
            {
              id: expect.any(String),
              type: 'topup',
              amountCents: 25,
              source: 'manual',
              ref: 'b',
              createdAt: expect.stringMatching(ISO),
            },
          ],
          invoices: expect.any(Array),
        },
        nextCursor: json.data.entries[0].id,
      });
      const { json: next } = await ask(`/billing?after=${json.nextCursor}`, { token });
      expect(next.data.entries).toEqual([expect.objectContaining({ ref: 'a', amountCents: 1_000 })]);
      expect(next.nextCursor).toBeNull();
    });

    it.each(['limit=0', 'after=x', `after=${newId('ent')}`])('answers 400 invalid_parameter to ?%s', (query) =>
      expectRefusal(`/billing?${query}`, {}, 400, 'invalid_parameter'),
    );
  });

  describe('GET /usage', () => {
    it('returns this calendar month until now by default, in exactly the documented fields', async () => {
      const before = new Date();
      const { status, json } = await ask('/usage');
      expect(status).toBe(200);
      const zero = { requests: 0, promptTokens: 0, completionTokens: 0, totalTokens: 0, costCents: 0 };
      expect(json).toEqual({
        data: { from: expect.any(String), to: expect.stringMatching(ISO), totals: zero, groups: [] },
      });
      const months = [before, new Date()].map((at) => `${at.toISOString().slice(0, 7)}-01T00:00:00.000Z`);
      expect(months).toContain(json.data.from);
      expect(Date.parse(json.data.to)).toBeGreaterThanOrEqual(before.getTime());
    });

    it('accepts every filter and grouping', async () => {
      const filters = `groupBy=model,key,day,hour&model=sim-small&keyId=${newId('key')}`;
      const query = `from=2026-01-01&to=2026-02-01T00:00:00%2B01:00&${filters}`;
      const { status, json } = await ask(`/usage?${query}`);
      expect(status).toBe(200);
      expect(json.data).toMatchObject({ from: '2026-01-01T00:00:00.000Z', to: '2026-01-31T23:00:00.000Z', groups: [] });
    });

    it.each([
      ['limit=1&limit=2', 'limit must be given only once.', '/keys'],
      ['from=2026-01-01&from=2026-01-02', 'from must be given only once.', '/usage'],
      ['groupBy=day,day', 'groupBy must not have the same item twice.', '/usage'],
      ['groupBy=user', 'groupBy: each must be one of: model, key, day, hour.', '/usage'],
    ])('says what is wrong with ?%s', async (query, message, path) => {
      expect((await ask(`${path}?${query}`)).json.error).toEqual({ code: 'invalid_parameter', message });
    });

    it.each([
      'from=x',
      'to=2026-02-30',
      'from=2026-01-02&to=2026-01-01',
      'from=2026-01-01&to=2026-01-01',
      'from=2999-01-01',
      'groupBy=user',
      'groupBy=',
      'groupBy=day,day',
      'model=%00',
      'model=',
      'keyId=x',
      'from=2026-01-01&from=2026-01-02',
    ])('answers 400 invalid_parameter to ?%s', (query) =>
      expectRefusal(`/usage?${query}`, {}, 400, 'invalid_parameter'),
    );
  });
}
