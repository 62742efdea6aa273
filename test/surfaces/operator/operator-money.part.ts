import { newId } from '@tollgate/contracts';
import { eventually, inForceAfterMs, onceServed } from '@tollgate/testing';
import { askOperator, send } from '../ask';
import type { Services } from '../services';
import { runTollgate, useDataDirectory } from '../tollgate-process';

export function operatorMoneyTests(services: Services): void {
  const directory = useDataDirectory(services);
  const ask = askOperator(services);

  async function expectRefusal(path: string, body: unknown, status: number, code: string) {
    const answer = await ask(path, { method: 'POST', body });
    expect([answer.status, answer.json.error.code]).toEqual([status, code]);
  }

  /** Creates a tenant with credit, a key and a token. */
  async function customer(cents = 1_000) {
    const { tenantId, token } = await services.tenant();
    await ask(`/tenants/${tenantId}/credit`, { body: { amountCents: cents, ref: 'first' } });
    const { key } = (await ask(`/tenants/${tenantId}/keys`, { body: { name: 'k' } })).json.data;
    const chat = (more: object = {}) =>
      send(`${services.publicUrl}/v1/chat/completions`, {
        token: key,
        body: { model: 'sim-small', messages: [{ role: 'user', content: 'Hello' }], max_tokens: 5, ...more },
      });
    await eventually(async () => expect((await chat()).status).toBe(200));
    const management = (path: string) => send(`${services.publicUrl}/_api/v1${path}`, { token });
    return { tenantId, key: String(key), chat, management };
  }

  describe('refunds and adjustments', () => {
    it('are booked once per ref, and shown to the tenant without their reason', async () => {
      const { tenantId, management } = await customer();
      const at = `/tenants/${tenantId}/credit`;
      for (let time = 0; time < 2; time++) {
        const { status, json } = await ask(`${at}/refund`, {
          body: { amountCents: 300, ref: 're_1', source: 'stripe' },
        });
        expect(status).toBe(201);
        expect(json.data).toMatchObject({
          balanceCents: 700,
          currency: 'USD',
          entry: { type: 'refund', amountCents: -300 },
          created: time === 0,
        });
      }
      await expectRefusal(`${at}/refund`, { amountCents: 301, ref: 're_1', source: 'stripe' }, 409, 'ref_conflict');
      await expectRefusal(`${at}/refund`, { amountCents: 700, ref: 're_2' }, 409, 'insufficient_credit');
      const adjust = { amountCents: -100, ref: 't-1', reason: 'correction' };
      expect((await ask(`${at}/adjust`, { body: adjust })).json.data).toMatchObject({
        balanceCents: 600,
        entry: { reason: 'correction' },
      });
      await expectRefusal(
        `${at}/adjust`,
        { amountCents: -5_000, ref: 't-2', reason: 'chargeback' },
        409,
        'insufficient_credit',
      );
      const debt = { amountCents: -5_000, ref: 't-2', reason: 'chargeback', allowDebt: true };
      expect((await ask(`${at}/adjust`, { body: debt })).json.data).toMatchObject({ balanceCents: -4_400 });
      const { data } = (await management('/billing')).json;
      expect(data.balanceCents).toBe(-4_400);
      expect(data.entries.slice(0, 2)).toEqual([
        {
          id: expect.any(String),
          type: 'adjustment',
          amountCents: -5_000,
          source: 'manual',
          ref: 't-2',
          createdAt: expect.any(String),
        },
        {
          id: expect.any(String),
          type: 'adjustment',
          amountCents: -100,
          source: 'manual',
          ref: 't-1',
          createdAt: expect.any(String),
        },
      ]);
    });

    it.each([
      ['refund', {}, 'invalid_amount'],
      ['refund', { amountCents: 0, ref: 'r' }, 'invalid_amount'],
      ['refund', { amountCents: -5, ref: 'r' }, 'invalid_amount'],
      ['refund', { amountCents: 0.5, ref: 'r' }, 'invalid_amount'],
      ['refund', { amountCents: 2 ** 53, ref: 'r' }, 'invalid_amount'],
      ['refund', { amountCents: 5 }, 'invalid_ref'],
      ['refund', { amountCents: 5, ref: 'r', source: 'metering' }, 'invalid_source'],
      ['refund', { amountCents: 5, ref: 'r', reason: ' ' }, 'invalid_reason'],
      ['adjust', { amountCents: 0, ref: 'r', reason: 'x' }, 'invalid_amount'],
      ['adjust', { amountCents: -1e13, ref: 'r', reason: 'x' }, 'invalid_amount'],
      ['adjust', { amountCents: 5, ref: 'r' }, 'invalid_reason'],
      ['adjust', { amountCents: 5, ref: 'r', reason: 'a\nb' }, 'invalid_reason'],
      ['adjust', { amountCents: 5, ref: 'r', reason: 'x', allowDebt: 'yes' }, 'invalid_json'],
    ])('%s refuses %j with %s', (how, body, code) =>
      expectRefusal(`/tenants/${newId('ten')}/credit/${how}`, body, 400, code),
    );

    it('a field without a code of its own says what is wrong with it', async () => {
      const body = { amountCents: 5, ref: 'r', reason: 'x', allowDebt: 'yes' };
      const { json } = await ask(`/tenants/${newId('ten')}/credit/adjust`, { body });
      expect(json.error).toEqual({ code: 'invalid_json', message: 'allowDebt must be a boolean.' });
    });

    it('of tenants that do not exist are not_found', async () => {
      for (const id of [newId('ten'), 'x', '%00']) {
        await expectRefusal(`/tenants/${id}/credit/refund`, { amountCents: 5, ref: 'r' }, 404, 'not_found');
        await expectRefusal(
          `/tenants/${id}/credit/adjust`,
          { amountCents: 5, ref: 'r', reason: 'x' },
          404,
          'not_found',
        );
        await expectRefusal(`/tenants/${id}/suspend`, undefined, 404, 'not_found');
        await expectRefusal(`/tenants/${id}/resume`, undefined, 404, 'not_found');
      }
    });

    it('work on the command line', async () => {
      const { tenantId } = await customer();
      const tollgate = async (...args: string[]) => {
        const { code, stdout, stderr } = await runTollgate(args, { TOLLGATE_DATA_DIR: directory.path });
        return `${code} ${stdout}${stderr}`.trim();
      };
      expect(await tollgate('credit', 'refund', tenantId, '2.50', '--ref', 'r1', '--yes')).toBe(
        '0 2.50 USD refunded (ref r1). Balance: 7.50 USD.',
      );
      expect(await tollgate('credit', 'refund', tenantId, '2.50', '--ref', 'r1', '--yes')).toMatch(
        /^0 2\.50 USD was already refunded at 20\S+Z \(ref r1\)\. Nothing was changed\. Balance after .*: 7\.50 USD\.$/,
      );
      expect(await tollgate('credit', 'adjust', tenantId, '-0.50', '--ref', 'r2', '--reason', 'test')).toBe(
        '0 -0.50 USD adjusted (ref r2). Balance: 7.00 USD.',
      );
      expect(await tollgate('credit', 'refund', tenantId, '7.00', '--ref', 'r3', '--yes')).toMatch(
        /^1 tollgate: Only 6\.\d\d USD is available\./,
      );
      expect(await tollgate('credit', 'refund', tenantId, '7.00')).toMatch(/^2 .*required option '--ref/s);
      // Nobody can be asked here.
      const refund = ['credit', 'refund', tenantId, '1.00', '--ref', 'r4'];
      const writeOff = ['credit', 'adjust', tenantId, 'all', '--ref', 'r4', '--reason', 'test'];
      for (const args of [refund, writeOff]) expect(await tollgate(...args)).toMatch(/^2 .*give --yes/);
      expect(await tollgate('tenant', 'suspend', tenantId)).toBe(`0 Tenant ${tenantId} (Acme) is suspended.`);
      expect(await tollgate('tenant', 'resume', tenantId)).toBe(`0 Tenant ${tenantId} (Acme) is active.`);
    });
  });

  it('a request after the answer of a top-up or an adjustment can use it at once', async () => {
    for (let round = 0; round < 20; round++) {
      const { tenantId } = await services.tenant();
      const { key } = (await ask(`/tenants/${tenantId}/keys`, { body: { name: 'k' } })).json.data;
      const status = async () =>
        (
          await send(`${services.publicUrl}/v1/chat/completions`, {
            token: key,
            body: { model: 'sim-small', messages: [{ role: 'user', content: 'Hello' }], max_tokens: 5 },
          })
        ).status;
      // Waits until the gateway knows the key and its lack of credit.
      await eventually(async () => expect(await status()).toBe(402));
      const body = { amountCents: 5, ref: 'first', reason: 'goodwill' };
      const how = round % 2 === 0 ? 'credit' : 'credit/adjust';
      if (round % 2 === 0) delete (body as Partial<typeof body>).reason;
      expect((await ask(`/tenants/${tenantId}/${how}`, { body })).status).toBe(201);
      expect(await status()).toBe(200);
    }
  });

  describe('a suspended tenant', () => {
    const SECOND_MS = 1_000;

    it('is refused within a second, reads its books, keeps running requests, and resumes within a second', async () => {
      const { tenantId, key, chat, management } = await customer();
      // A stream that is running when the tenant is suspended.
      const stream = await fetch(`${services.publicUrl}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify({
          model: 'sim-small',
          messages: [{ role: 'user', content: 'Hello' }],
          stream: true,
          max_tokens: 200,
        }),
      });
      expect(stream.status).toBe(200);

      const turn = async (to: 'suspend' | 'resume') => {
        const { status, json } = await onceServed(() => ask(`/tenants/${tenantId}/${to}`, { method: 'POST' }));
        expect(status).toBe(200);
        return json.data.status;
      };
      expect(await turn('suspend')).toBe('suspended');
      const suspendedMs = await inForceAfterMs(async () => expect((await chat()).status).toBe(402));
      expect(suspendedMs).toBeLessThan(SECOND_MS);
      for (const more of [{}, { stream: true }]) {
        const refused = await chat(more);
        expect([refused.status, refused.json.error]).toEqual([
          402,
          { message: expect.any(String), type: 'billing_error', param: null, code: 'tenant_suspended' },
        ]);
        expect(refused.headers.get('retry-after')).toBeNull();
      }
      for (const path of ['/billing', '/usage', '/keys', '/tokens']) expect((await management(path)).status).toBe(200);
      expect((await send(`${services.publicUrl}/v1/models`, { token: key })).status).toBe(200);
      expect(await stream.text()).toMatch(/"finish_reason":"(stop|length)".*data: \[DONE\]\n\n$/s);
      // A top-up does not end the suspension.
      await ask(`/tenants/${tenantId}/credit`, { body: { amountCents: 5, ref: 'second' } });
      expect((await chat()).json.error.code).toBe('tenant_suspended');

      expect(await turn('resume')).toBe('active');
      expect(await inForceAfterMs(async () => expect((await chat()).status).toBe(200))).toBeLessThan(SECOND_MS);
    });

    it('is suspended when the request is answered, even if the admission store has a forged version', async () => {
      const { tenantId, chat } = await customer();
      await services.database.query('UPDATE admission.tenant SET version = 999999999 WHERE tenant_id = $1', [tenantId]);
      expect((await ask(`/tenants/${tenantId}/suspend`, { method: 'POST' })).status).toBe(200);
      expect((await chat()).json.error.code).toBe('tenant_suspended');
    });

    it('gets 503 for a suspension or a budget while the store is down, and a repeat succeeds later', async () => {
      const { tenantId, chat } = await customer();
      const suspend = () => ask(`/tenants/${tenantId}/suspend`, { method: 'POST' });
      const budget = () => ask(`/tenants/${tenantId}/budget`, { method: 'PUT', body: { monthlyBudgetCents: 0 } });
      const table = 'ALTER TABLE admission.tenant';
      // Only writes of this tenant fail.
      await services.database.query(`${table} ADD CONSTRAINT away CHECK (tenant_id <> '${tenantId}') NOT VALID`);
      try {
        for (const [change, message] of [
          [budget, 'The previous budget may still be in force. Set the budget again until it succeeds.'],
          [suspend, 'New requests of the tenant may still be admitted. Repeat the suspension until it succeeds.'],
        ] as const) {
          const { status, headers, json } = await change();
          expect([status, headers.get('retry-after')]).toEqual([503, '1']);
          expect(json).toEqual({ error: { code: 'unavailable', message } });
        }
      } finally {
        await services.database.query(`${table} DROP CONSTRAINT away`);
      }
      expect((await budget()).status).toBe(200);
      expect((await chat()).status).toBe(402);
      expect((await suspend()).json.data.status).toBe('suspended');
      expect((await chat()).json.error.code).toBe('tenant_suspended');
    });
  });
}
