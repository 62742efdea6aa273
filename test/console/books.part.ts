import type { TestDatabase } from '@tollgate/testing';
import type { Configuration } from '../../apps/console/src/api/answers';
import type { BrowserSession } from './browser';
import { issueInvoice } from './invoice.fixture';
import { API, type Role } from './people';

const NANOS_PER_CENT = 10_000_000n;

interface AuditRow {
  action: string;
  by: { kind: string; name: string | null; address: string | null };
  after: Record<string, unknown> | null;
}

/** Budgets, invoices and the audit log of a tenant. */
export function bookTests(
  deployed: () => {
    operator: BrowserSession;
    of: (role: Role) => BrowserSession;
    tenantId: string;
    foreignId: string;
    database: TestDatabase;
  },
): void {
  const tenant = () => `${API}/tenants/${deployed().tenantId}`;

  it('budgets of a tenant and of a key are set, shown and taken back, and wrong ones are refused', async () => {
    const billing = deployed().of('billing');
    const key = await deployed().of('owner').post(`${tenant()}/keys`, { name: 'with a budget' });
    const set = await billing.send('PUT', `${tenant()}/budget`, { budgetCents: 700, thresholdsPercent: [40, 90] });
    expect(set.json).toMatchObject({ budgetCents: 700, isDefault: false, thresholdsPercent: [40, 90] });
    await billing.send('PUT', `${tenant()}/keys/${key.json.id}/budget`, { budgetCents: 30 });
    const list = await billing.get(`${tenant()}/budgets`);
    expect(list.json).toMatchObject({
      tenant: { budgetCents: 700, spentNanos: '0' },
      keys: { data: [{ keyId: key.json.id, keyName: 'with a budget', budgetCents: 30 }], nextCursor: null },
    });
    for (const [body, code] of [
      [{ budgetCents: -1 }, 'invalid_request'],
      [{ budgetCents: 1.5 }, 'invalid_request'],
      [{}, 'invalid_request'],
      [{ budgetCents: 700, thresholdsPercent: [90, 40] }, 'invalid_thresholds'],
    ] as const) {
      const answer = await billing.send('PUT', `${tenant()}/budget`, body);
      expect([answer.status, answer.json.error.code]).toEqual([400, code]);
    }
    const none = await billing.send('PUT', `${tenant()}/budget`, { budgetCents: null });
    expect(none.json).toMatchObject({ budgetCents: null, isDefault: false });
    const byPlan = await billing.send('PUT', `${tenant()}/budget`, { budgetCents: 'default', thresholdsPercent: null });
    expect(byPlan.json).toMatchObject({ isDefault: true });
  });

  it('a tenant sees who of its own changed what, and of an operator only that it was one', async () => {
    const billing = deployed().of('billing');
    await billing.send('PUT', `${tenant()}/budget`, { budgetCents: 4_321 });
    await deployed().operator.post(`${API}/operator/tenants/${deployed().tenantId}/credit`, {
      kind: 'topup',
      amountCents: 1_000,
      reason: 'for the audit',
      ref: 'audit-1',
    });
    const log = await deployed().of('owner').get(`${tenant()}/audit`);
    const rows = log.json.data as AuditRow[];
    const budget = rows.find(({ action, after }) => action === 'budget.set' && after?.['budgetCents'] === 4_321);
    expect(budget?.by).toMatchObject({ kind: 'person', name: 'billing@example.com', address: '127.0.0.1' });
    const credit = rows.find(({ action }) => action === 'credit.add');
    expect(credit?.by).toMatchObject({ kind: 'person', name: null, address: null });
    // An operator sees both, beside the changes of other tenants.
    const all = (await deployed().operator.get(`${API}/operator/audit?limit=200`)).json.data as AuditRow[];
    expect(all.find(({ action }) => action === 'credit.add')?.by.name).toBe('operator@example.com');
    expect(all.filter(({ action }) => action === 'tenant.create').length).toBeGreaterThanOrEqual(2);
    const filtered = await deployed().of('owner').get(`${tenant()}/audit?action=budget.set&limit=1`);
    expect(filtered.json.data.map(({ action }: AuditRow) => action)).toEqual(['budget.set']);
    expect(filtered.json.nextCursor).not.toBeNull();
    const foreign = await deployed().of('owner').get(`${tenant()}/audit?limit=200`);
    expect(foreign.text).not.toContain(deployed().foreignId);
  });

  it('an invoice shows the usage of its month, and exists for its tenant and for operators only', async () => {
    const { tenantId, foreignId, database, operator, of } = deployed();
    await operator.post(`${API}/operator/tenants/${tenantId}/credit`, {
      kind: 'topup',
      amountCents: 1_000,
      reason: 'for the invoice',
      ref: 'invoice-1',
    });
    const configuration = (await operator.get(`${API}/operator/configuration`)).json as Configuration;
    const { period, number, model, tokens, cost } = await issueInvoice(database, tenantId, configuration);
    const list = await operator.get(`${API}/operator/invoices?period=${period}&tenantId=${tenantId}`);
    expect(list.json.data).toMatchObject([{ accountingNumber: number, period }]);
    const path = `invoices/${number}`;
    const sheet = await of('billing').get(`${tenant()}/${path}`);
    expect(sheet.json).toMatchObject({
      invoice: { period, amountCents: Number(cost / NANOS_PER_CENT), status: 'paid', tenantId },
      tenantName: 'Acme',
      lines: [{ name: model, requests: 1, ...tokens, costNanos: String(cost) }],
    });
    const foreign = await operator.get(`${API}/tenants/${foreignId}/${path}`);
    expect([foreign.status, foreign.json.error.code]).toEqual([404, 'not_found']);
    expect((await of('billing').get(`${tenant()}/invoices/x`)).status).toBe(404);
    expect((await operator.get(`${API}/operator/invoices?period=2026-13`)).status).toBe(400);
  });

  it('an operator sees the plans and prices in force, without backends and their secrets', async () => {
    const { json, text } = await deployed().operator.get(`${API}/operator/configuration`);
    expect(json).toMatchObject({ currency: 'USD', plans: expect.any(Array), models: expect.any(Array) });
    expect(json.models[0]).toMatchObject({ id: expect.any(String), price: { input: expect.any(String) } });
    expect(json.plans[0].profiles[0]).toMatchObject({ limits: { concurrency: expect.any(Number) } });
    expect(text).not.toContain('backends');
  });
}
