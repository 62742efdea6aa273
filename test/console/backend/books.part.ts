import type { TestDatabase } from '@tollgate/testing';
import type { Configuration } from '../../../apps/console/src/api/answers';
import type { BrowserSession } from '../running/browser';
import { issueInvoice } from '../books/invoice.fixture';
import type { Mailbox } from '../running/mailbox';
import { API, invite, join, type Role, secretOf } from '../running/people';

const NANOS_PER_CENT = 10_000_000n;

interface AuditRow {
  at: string;
  action: string;
  target: string | null;
  tenantId: string | null;
  by: { kind: string; name: string | null; address: string | null };
  before: Record<string, unknown> | null;
  after: Record<string, unknown> | null;
}

/** Budgets, invoices and the audit log of a tenant. */
export function bookTests(
  deployed: () => {
    operator: BrowserSession;
    of: (role: Role) => BrowserSession;
    tenantId: string;
    foreignId: string;
    base: string;
    mailbox: Mailbox;
    database: TestDatabase;
    forgetTries: () => Promise<unknown>;
  },
): void {
  const tenant = () => `${API}/tenants/${deployed().tenantId}`;

  it('budgets of a tenant and of a key are set, shown and taken back, and wrong ones are refused', async () => {
    const billing = deployed().of('billing');
    const key = await deployed().of('owner').post(`${tenant()}/keys`, { name: 'with a budget' });
    const set = await billing.send('PUT', `${tenant()}/budget`, { budgetCents: 700, thresholdsPercent: [40, 90] });
    expect(set.json).toMatchObject({ budgetCents: 700, isDefault: false, thresholdsPercent: [40, 90] });
    await billing.send('PUT', `${tenant()}/keys/${key.json.id}/budget`, { budgetCents: Number.MAX_SAFE_INTEGER });
    const list = await billing.get(`${tenant()}/budgets`);
    expect(list.json).toMatchObject({
      tenant: { budgetCents: 700, spentNanos: '0' },
      keys: {
        data: [{ keyId: key.json.id, keyName: 'with a budget', budgetCents: Number.MAX_SAFE_INTEGER }],
        nextCursor: null,
      },
    });
    for (const [body, code] of [
      [{ budgetCents: -1 }, 'invalid_request'],
      [{ budgetCents: 1.5 }, 'invalid_request'],
      [{ budgetCents: 2 ** 53 }, 'invalid_request'],
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
    expect(credit?.after).toMatchObject({ type: 'topup', amountCents: 1_000, ref: 'audit-1' });
    expect(log.text).not.toContain('for the audit');
    // An operator sees both, with the reason, beside the changes of other tenants.
    const all = (await deployed().operator.get(`${API}/operator/audit?limit=200`)).json.data as AuditRow[];
    expect(all.find(({ action }) => action === 'credit.add')).toMatchObject({
      by: { name: 'operator@example.com' },
      after: { reason: 'for the audit' },
    });
    expect(all.filter(({ action }) => action === 'tenant.create').length).toBeGreaterThanOrEqual(2);
    const filtered = await deployed().of('owner').get(`${tenant()}/audit?action=budget.set&limit=1`);
    expect(filtered.json.data.map(({ action }: AuditRow) => action)).toEqual(['budget.set']);
    expect(filtered.json.nextCursor).not.toBeNull();
    const { at } = all.find(({ action }) => action === 'budget.set')!;
    const since = await deployed().operator.get(`${API}/operator/audit?from=${at}&limit=200`);
    expect((since.json.data as AuditRow[]).every((row) => row.at >= at)).toBe(true);
    const until = await deployed().operator.get(`${API}/operator/audit?to=${at}&limit=200`);
    expect((until.json.data as AuditRow[]).every((row) => row.at < at)).toBe(true);
    expect(since.json.data.length + until.json.data.length).toBeGreaterThanOrEqual(all.length);
    expect((await deployed().operator.get(`${API}/operator/audit?from=today`)).status).toBe(400);
    const foreign = await deployed().of('owner').get(`${tenant()}/audit?limit=200`);
    expect(foreign.text).not.toContain(deployed().foreignId);
  });

  it('who may do what is in the log: each invitation, member and role, with the person who changed it', async () => {
    const { operator, of, forgetTries, base, mailbox, database } = deployed();
    const { id } = (await operator.post(`${API}/operator/tenants`, { name: 'Staffed' })).json as { id: string };
    const path = `${API}/tenants/${id}`;
    const log = async () =>
      ((await operator.get(`${path}/audit?limit=50`)).json.data as AuditRow[])
        .filter(({ action }) => /^(member|invitation|operator)/.test(action))
        .map(({ action, by, before, after }) => [action, by.name, before ?? after])
        .reverse();
    const email = 'staff@example.com';
    await forgetTries();
    const browser = await join(base, await invite(operator, { tenantId: id, email, role: 'owner', mailbox }), email);
    const [{ userId }] = (await browser.get(`${path}/members`)).json.data as [{ userId: string }];
    // Refused, so it is not in the log.
    expect((await browser.send('PATCH', `${path}/members/${userId}`, { role: 'viewer' })).status).toBe(409);
    await invite(browser, { tenantId: id, email: 'billing@example.com', role: 'viewer', mailbox });
    const secret = secretOf(mailbox.linkTo('billing@example.com'));
    expect((await of('billing').post(`${API}/invitation/accept`, { secret })).status).toBe(200);
    const [, other] = (await browser.get(`${path}/members`)).json.data as [unknown, { userId: string }];
    const member = `${path}/members/${other.userId}`;
    for (const role of ['admin', 'admin']) expect((await browser.send('PATCH', member, { role })).status).toBe(204);
    expect((await browser.send('DELETE', member)).status).toBe(204);
    await invite(browser, { tenantId: id, email: 'never@example.com', role: 'member', mailbox });
    const [open] = (await browser.get(`${path}/members`)).json.invitations as [{ id: string }];
    expect((await browser.send('DELETE', `${path}/invitations/${open.id}`)).status).toBe(204);
    const ofBilling = { name: 'billing@example.com' };
    expect(await log()).toEqual([
      // Operators have no name here. Former members keep theirs.
      ['invitation.create', null, { name: email, role: 'owner' }],
      ['member.add', email, { name: email, role: 'owner', invitation: expect.stringMatching(/^inv_/) }],
      ['invitation.create', email, { ...ofBilling, role: 'viewer' }],
      ['member.add', 'billing@example.com', { ...ofBilling, role: 'viewer', invitation: expect.anything() }],
      ['member.update', email, { ...ofBilling, role: 'viewer' }],
      ['member.remove', email, { ...ofBilling, role: 'admin' }],
      ['invitation.create', email, { name: 'never@example.com', role: 'member' }],
      ['invitation.withdraw', email, { name: 'never@example.com', role: 'member' }],
    ]);
    // The tenant sees its own people by name, and from where they wrote.
    const own = (await browser.get(`${path}/audit?action=member.remove`)).json.data as AuditRow[];
    expect(own).toMatchObject([{ target: other.userId, by: { name: email, address: '127.0.0.1' } }]);
    // Also by filter: the people of the tenant, and nobody whose address is guessed.
    const by = async (author: string) =>
      ((await browser.get(`${path}/audit?author=${author}`)).json.data as AuditRow[]).map(({ action }) => action);
    expect(await by('billing@example.com')).toEqual(['member.add']);
    expect(await by(other.userId)).toEqual(['member.add']);
    expect((await by(email)).at(-1)).toBe('member.add');
    const [{ id: operatorId }] = (await database.query(
      `SELECT id FROM console."user" WHERE email = 'operator@example.com'`,
    )) as [{ id: string }];
    for (const guessed of ['operator@example.com', operatorId, 'owner@example.com', 'nobody@example.com'])
      expect([guessed, await by(guessed)]).toEqual([guessed, []]);
    const made = (await operator.get(`${API}/operator/audit?action=operator.add&limit=200`)).json.data as AuditRow[];
    expect(made.at(-1)).toMatchObject({ by: { name: 'operator@example.com' }, tenantId: null });
    const secrets = await database.query('SELECT a::text FROM auth.audit_log a');
    expect(JSON.stringify(secrets)).not.toContain(secret);
  });

  it('an operator who is also an owner reveals no reason, and is seen by name like any member', async () => {
    const { operator, base, mailbox, forgetTries } = deployed();
    const { id } = (await operator.post(`${API}/operator/tenants`, { name: 'Owned' })).json as { id: string };
    const email = 'second-owner@example.com';
    await forgetTries();
    const browser = await join(base, await invite(operator, { tenantId: id, email, role: 'owner', mailbox }), email);
    const wanted = { tenantId: id, email: 'operator@example.com', role: 'owner', mailbox } as const;
    const secret = secretOf(await invite(browser, wanted));
    expect((await operator.post(`${API}/invitation/accept`, { secret })).status).toBe(200);
    const booking = { kind: 'topup', amountCents: 10, reason: 'told to no member', ref: 'owned-1' };
    await operator.post(`${API}/operator/tenants/${id}/credit`, booking);
    for (const reader of [browser, operator]) {
      const log = await reader.get(`${API}/tenants/${id}/audit`);
      const credit = (log.json.data as AuditRow[]).find(({ action }) => action === 'credit.add');
      expect(credit).toMatchObject({ by: { name: 'operator@example.com' }, after: { amountCents: 10 } });
      expect(log.text).not.toContain(booking.reason);
    }
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
    expect(list.json.data).toMatchObject([{ accountingNumber: number, period, tenantId, tenantName: 'Acme' }]);
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

  it('a receipt shows its entry without the reason of the operator, and exists for its tenant only', async () => {
    const { tenantId, foreignId, operator, of } = deployed();
    const booking = { kind: 'adjustment', amountCents: 321, reason: 'kept inside', ref: 'receipt-1' };
    const { entry } = (await operator.post(`${API}/operator/tenants/${tenantId}/credit`, booking)).json as {
      entry: { id: string };
    };
    const path = `credit/${entry.id}`;
    const receipt = await of('billing').get(`${tenant()}/${path}`);
    expect(receipt.json).toMatchObject({
      entry: { id: entry.id, type: 'adjustment', amountCents: 321, ref: 'receipt-1', tenantId },
      tenantName: 'Acme',
      requests: [],
    });
    const credit = await of('billing').get(`${tenant()}/credit`);
    expect(credit.json.entries[0]).toMatchObject({ id: entry.id });
    expect(receipt.json.entry.balanceAfterCents).toBe(credit.json.balanceCents);
    expect(receipt.text + credit.text).not.toContain('kept inside');
    const foreign = await operator.get(`${API}/tenants/${foreignId}/${path}`);
    expect([foreign.status, foreign.json.error.code]).toEqual([404, 'not_found']);
    expect((await of('billing').get(`${tenant()}/credit/x`)).status).toBe(404);
    expect((await of('billing').get(`${tenant()}/${path}?after=x`)).status).toBe(400);
  });

  it('an operator sees the plans and prices in force, and the whole configuration without its secrets', async () => {
    const { json, text } = await deployed().operator.get(`${API}/operator/configuration`);
    expect(json).toMatchObject({ currency: 'USD', plans: expect.any(Array), models: expect.any(Array) });
    expect(json.models[0]).toMatchObject({ id: expect.any(String), price: { input: expect.any(String) } });
    expect(json.models[0]).not.toHaveProperty('backends');
    expect(json.plans[0].profiles[0]).toMatchObject({ limits: { concurrency: expect.any(Number) } });
    expect(json.whole.models[0].backends[0]).toMatchObject({ url: expect.any(String), weight: 1 });
    expect(text).not.toMatch(/"apiKey":"(?!\(secret\)")/);
  });
}
