import { newId } from '@tollgate/contracts';
import { eventually, inForceAfterMs } from '@tollgate/testing';
import { type Asked, askOperator, send } from '../ask';
import type { Services } from '../services';
import { runTollgate, useDataDirectory } from '../tollgate-process';

export function operatorTenantsTests(services: Services): void {
  const directory = useDataDirectory(services);
  const ask = askOperator(services);
  const tollgate = (...args: string[]) => runTollgate(args, { TOLLGATE_DATA_DIR: directory.path });
  async function answered(...args: string[]) {
    const { code, stdout, stderr } = await tollgate(...args, '--json');
    expect([code, stderr]).toEqual([0, expect.any(String)]);
    return JSON.parse(stdout);
  }
  async function refusal(path: string, asked: Asked) {
    const { status, json } = await ask(path, asked);
    return [status, json.error?.code];
  }

  beforeAll(() => {
    const [plan] = services.config.plans;
    const narrow = { requestsPerMinute: 7, tokensPerMinute: 1_000, concurrency: 2 };
    const profile = { ...plan!.profiles[0]!, id: 'tiny', limits: narrow };
    services.config.plans.push({ ...plan!, id: 'narrow', profiles: [profile] });
  });

  /** A tenant with 10.00 of credit and a key that works. */
  async function customer() {
    const { tenantId, token } = await services.tenant();
    await ask(`/tenants/${tenantId}/credit`, { body: { amountCents: 1_000, ref: 'first' } });
    const { key, id: keyId } = (await ask(`/tenants/${tenantId}/keys`, { body: { name: 'k' } })).json.data;
    const chat = () =>
      send(`${services.publicUrl}/v1/chat/completions`, {
        token: key,
        body: { model: 'sim-small', messages: [{ role: 'user', content: 'Hello' }], max_tokens: 5 },
      });
    await eventually(async () => expect((await chat()).status).toBe(200));
    return { tenantId, token, keyId: String(keyId), chat };
  }

  describe('a tenant', () => {
    it('is found by its external id, renamed and shown by the command, each in the audit log', async () => {
      const made = await answered('tenant', 'create', 'Acme', '--external-id', 'crm:4711');
      expect(made).toMatchObject({ name: 'Acme', externalId: 'crm:4711', status: 'active' });
      const again = await tollgate('tenant', 'create', 'Acme', '--external-id', 'crm:4711');
      const taken = 'tollgate: Another tenant has this --external-id. Choose another one.\n';
      expect([again.code, again.stderr]).toEqual([1, taken]);
      expect(await answered('tenant', 'list', '--external-id', 'crm:4711')).toEqual([made]);
      expect(await answered('tenant', 'list', '--external-id', 'crm:4712')).toEqual([]);
      const renamed = await answered('tenant', 'rename', made.id, 'Acme Ltd', '--no-external-id');
      expect(renamed).toEqual({ ...made, name: 'Acme Ltd', externalId: null });
      expect((await tollgate('tenant', 'rename', made.id)).code).toBe(2);
      expect(await answered('tenant', 'show', made.id)).toEqual({
        ...renamed,
        ...{ activeKeys: 0, balanceCents: 0, spendableCents: null, currency: 'USD' },
      });
      expect((await tollgate('tenant', 'show', made.id)).stdout).toMatch(/^Tenant: +ten_[^]*\nName: +Acme Ltd\n/);
      expect((await answered('audit', '--tenant', made.id))[0]).toMatchObject({
        action: 'tenant.update',
        before: { name: 'Acme', externalId: 'crm:4711' },
        after: { name: 'Acme Ltd', externalId: null },
      });
    });

    it('refuses a malformed external id, and other tenants are not found', async () => {
      const { tenantId } = await services.tenant();
      for (const externalId of ['', ' a', 'ü', 'x'.repeat(129), 5])
        expect(await refusal(`/tenants/${tenantId}`, { method: 'PATCH', body: { externalId } })).toEqual([
          400,
          'invalid_external_id',
        ]);
      expect(await refusal(`/tenants/${tenantId}`, { method: 'PATCH', body: { plan: 'gold' } })).toEqual([
        400,
        'invalid_plan',
      ]);
      expect(await refusal(`/tenants/${tenantId}`, { method: 'PATCH', body: { profiles: { a: 'b' } } })).toEqual([
        400,
        'invalid_plan',
      ]);
      for (const id of [newId('ten'), 'x', '%00']) {
        expect(await refusal(`/tenants/${id}`, { method: 'PATCH', body: { name: 'x' } })).toEqual([404, 'not_found']);
        for (const end of ['close', 'erase'])
          expect(await refusal(`/tenants/${id}/${end}`, { method: 'POST' })).toEqual([404, 'not_found']);
      }
    });

    it('has the limits of a new plan within a second of the answer, and other tenants keep theirs', async () => {
      const { tenantId, chat } = await customer();
      const other = await customer();
      const limit = async (of: typeof other) => (await of.chat()).headers.get('x-ratelimit-limit-requests');
      const before = await limit(other);
      const refused = await tollgate('tenant', 'set-plan', tenantId, 'narrow');
      expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('default (keys: 1)')]);
      expect((await tollgate('tenant', 'set-plan', tenantId, 'narrow', '--profile', 'default')).code).toBe(2);
      const changed = await answered('tenant', 'set-plan', tenantId, 'narrow', '--profile', 'default=tiny');
      expect(changed).toMatchObject({ id: tenantId, plan: 'narrow' });
      const lateMs = await inForceAfterMs(async () =>
        expect((await chat()).headers.get('x-ratelimit-limit-requests')).toBe('7'),
      );
      expect(lateMs).toBeLessThan(1_000);
      expect(await limit(other)).toBe(before);
    });
  });

  describe('the end of a tenant', () => {
    /** Repeats the command until usage that was on its way is booked. Each repeat has a ref of its own. */
    async function endsAtZero(tenantId: string, words: string, ...how: string[]) {
      let repeats = 0;
      await eventually(async () => {
        const ref = `again-${++repeats}`;
        const { code, stdout } = await tollgate('tenant', 'close', tenantId, '--yes', '--ref', ref, ...how);
        expect([code, stdout]).toEqual([0, `${words}\n`]);
      });
      const { balanceCents, carriedNanos } = (await ask(`/tenants/${tenantId}/credit`)).json.data;
      expect(balanceCents).toBe(0);
      return carriedNanos;
    }

    it('without any credit left is a success', async () => {
      const { tenantId } = await services.tenant();
      expect(await endsAtZero(tenantId, 'Nothing was left to refund.', '--refund')).toBe('0');
      expect(await endsAtZero(tenantId, 'Nothing was left to write off.', '--write-off', '--reason', 'x')).toBe('0');
      const args = ['tenant', 'close', tenantId, '--yes', '--refund', '--ref', 'end'];
      expect(await answered(...args)).toEqual({ entry: null, created: false, balanceCents: 0, currency: 'USD' });
    });

    it('stops its keys and tokens within a second, and refunds what is left as one entry', async () => {
      const { tenantId, token, chat } = await customer();
      const other = await customer();
      await services.flushUsage();
      const asking = ['tenant', 'close', tenantId, '--refund', '--ref', 'end-1'];
      const unasked = await tollgate(...asking);
      expect([unasked.code, unasked.stderr]).toEqual([2, expect.stringContaining('give --yes')]);
      expect(await answered('tenant', 'show', tenantId)).toMatchObject({ status: 'active' });
      const args = [...asking, '--yes'];
      const ended = await eventually(() => answered(...args));
      expect(ended.entry).toMatchObject({ type: 'refund', ref: 'end-1' });
      expect(ended.entry.amountCents).toBeLessThan(-990);
      expect(await answered(...args)).toEqual({ ...ended, created: false });
      expect(await refusal(`/tenants/${tenantId}/credit`, { body: { amountCents: 5, ref: 'late' } })).toEqual([
        409,
        'tenant_closed',
      ]);
      // The answer of a top-up from before may have been lost.
      const first = { body: { amountCents: 1_000, ref: 'first' } };
      expect((await ask(`/tenants/${tenantId}/credit`, first)).json.data).toMatchObject({ created: false });
      const late = await tollgate('credit', 'add', tenantId, '5');
      expect([late.code, late.stderr]).toEqual([1, 'tollgate: The tenant is permanently closed.\n']);
      const lateMs = await inForceAfterMs(async () => expect((await chat()).json.error.code).toBe('invalid_api_key'));
      expect(lateMs).toBeLessThan(1_000);
      const keys = () => send(`${services.publicUrl}/_api/v1/keys`, { token });
      await eventually(async () => expect((await keys()).json.error.code).toBe('token_revoked'));
      expect(await refusal(`/tenants/${tenantId}/keys`, { body: { name: 'k' } })).toEqual([409, 'tenant_closed']);
      expect(await refusal(`/tenants/${tenantId}/resume`, { method: 'POST' })).toEqual([409, 'tenant_closed']);
      expect((await other.chat()).status).toBe(200);
      expect((await ask(`/tenants/${tenantId}/credit`)).json.data.entries.length).toBeGreaterThan(1);
      expect(await endsAtZero(tenantId, 'Nothing was left to refund.', '--refund')).toMatch(/^[1-9]\d{0,6}$/);
      const { entries } = (await ask(`/tenants/${tenantId}/credit`)).json.data;
      expect(entries.filter(({ type }: { type: string }) => type === 'adjustment')).toEqual([
        expect.objectContaining({
          amountCents: -1,
          reason: expect.stringMatching(/^The last cent of a closed tenant/),
        }),
      ]);
      expect(await answered('reconcile')).toMatchObject({ ok: true });
    });

    it('writes credit off with a reason, then erases names and keeps the books', async () => {
      const { tenantId } = await customer();
      await services.flushUsage();
      const close = ['tenant', 'close', tenantId, '--yes', '--write-off', '--ref', 'end'];
      for (const wrong of [
        close,
        ['tenant', 'close', tenantId, '--yes', '--refund'],
        [...close, '--refund', '--reason', 'x'],
      ])
        expect((await tollgate(...wrong)).code).toBe(2);
      expect(await refusal(`/tenants/${tenantId}/erase`, { method: 'POST' })).toEqual([409, 'tenant_not_closed']);
      const { entry } = await eventually(() => answered(...close, '--reason', 'contract ended'));
      expect(entry).toMatchObject({ type: 'adjustment', reason: 'contract ended' });
      const credit = async () => (await ask(`/tenants/${tenantId}/credit`)).json.data;
      const { entries } = await credit();
      expect((await tollgate('tenant', 'erase', tenantId)).code).toBe(2);
      expect(await answered('tenant', 'erase', tenantId, '--yes')).toMatchObject({ id: tenantId, name: 'erased' });
      expect((await credit()).entries).toEqual(entries);
      expect((await answered('key', 'list', tenantId))[0]).toMatchObject({ name: 'erased', status: 'revoked' });
      expect(await answered('reconcile')).toMatchObject({ ok: true });
    });

    it('is nowhere by name after its erasure, in no table of any service, nor by changes that come later', async () => {
      const name = 'Zebedee Quux';
      const by = {
        ...{ kind: 'person' as const, id: newId('msg'), name: 'zebedee@example.com' },
        ...{ address: '198.51.100.77', requestId: newId('req') },
      };
      const made = await answered('tenant', 'create', name, '--external-id', `zebedee-${newId('msg')}`);
      const tenantId = String(made.id);
      const request = services.messages.request.bind(services.messages);
      await ask(`/tenants/${tenantId}/credit`, { body: { amountCents: 1_000, ref: 'first' } });
      const wanted = { name: `laptop of ${name}`, owner: by.name, tags: ['team-zebedee'] };
      const { key, id } = (await ask(`/tenants/${tenantId}/keys`, { body: wanted })).json.data;
      await ask(`/tenants/${tenantId}/tokens`, { body: { name: `token of ${name}`, scopes: ['keys:read'] } });
      const body = { model: 'sim-small', messages: [{ role: 'user', content: `I am ${name}` }], max_tokens: 5 };
      const chat = () =>
        send(`${services.publicUrl}/v1/chat/completions`, {
          token: key,
          body: { ...body, user: by.name },
          headers: { 'idempotency-key': 'one' },
        });
      await eventually(async () => expect((await chat()).status).toBe(200));
      await request('auth.keys.update', { tenantId, id, name: `phone of ${name}`, by });
      const after = { name: by.name, role: 'owner' };
      await request('auth.audit.record', { action: 'member.add', target: by.id, tenantId, after, by });
      await request('billing.budget.set', { tenantId, keyId: null, budgetCents: 500, by });
      await services.flushUsage();

      const places = async () => {
        const { database } = services;
        const tables = await database.query<{ name: string }>(
          `SELECT format('%I.%I', table_schema, table_name) AS name FROM information_schema.tables
           WHERE table_schema NOT IN ('pg_catalog', 'information_schema') AND table_type = 'BASE TABLE'`,
        );
        const found: string[] = [];
        for (const { name: table } of tables) {
          const sql = `SELECT 1 FROM ${table} t WHERE t::text ~* 'zebedee|198\\.51\\.100\\.77' LIMIT 1`;
          if ((await database.query(sql)).length > 0) found.push(table);
        }
        return found;
      };
      expect(await places()).toEqual(
        expect.arrayContaining(['auth.audit_log', 'auth.credential', 'auth.tenant', 'billing.audit_log']),
      );
      await answered('tenant', 'close', tenantId, '--yes');
      await answered('tenant', 'erase', tenantId, '--yes');
      await request('billing.budget.set', { tenantId, keyId: null, budgetCents: 600, by });
      await request('auth.audit.record', { action: 'member.remove', target: by.id, tenantId, before: after, by });
      const renamed = await ask(`/tenants/${tenantId}/keys/${id}`, { method: 'PATCH', body: { owner: by.name } });
      expect([renamed.status, renamed.json.error.code]).toEqual([409, 'tenant_closed']);
      expect(await places()).toEqual([]);
      const rows: { action: string; by: object }[] = await answered('audit', '--tenant', tenantId);
      expect(rows.filter(({ action }) => action === 'budget.set').map((row) => row.by)).toEqual(
        Array(2).fill({ ...by, name: null, address: null }),
      );
      expect(await answered('reconcile')).toMatchObject({ ok: true });
    });
  });
}
