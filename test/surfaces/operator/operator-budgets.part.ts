import { newId } from '@tollgate/contracts';
import { eventually, inForceAfterMs, onceServed } from '@tollgate/testing';
import { askOperator, send } from '../ask';
import type { Services } from '../services';
import { runTollgate, useDataDirectory } from '../tollgate-process';

export function operatorBudgetsTests(services: Services): void {
  const directory = useDataDirectory(services);
  const ask = askOperator(services);
  const put = (path: string, body: unknown) => ask(path, { method: 'PUT', body });
  const set = async (path: string, body: unknown) => {
    const answer = await onceServed(() => put(path, body));
    expect(answer.status).toBe(200);
    return answer;
  };
  const month = () => new Date().toISOString().slice(0, 7);
  const tollgate = (...args: string[]) => runTollgate([...args, '--json'], { TOLLGATE_DATA_DIR: directory.path });

  async function newKey(tenantId: string) {
    const { key, id } = (await ask(`/tenants/${tenantId}/keys`, { body: { name: 'k' } })).json.data;
    const chat = (more: object = {}) =>
      send(`${services.publicUrl}/v1/chat/completions`, {
        token: key,
        // A request of 10,000 output tokens costs 2.00, so a few of them use up a budget.
        body: { model: 'sim-large', messages: [{ role: 'user', content: 'Hello' }], max_tokens: 50, ...more },
      });
    return { id: String(id), chat };
  }

  async function customer() {
    const { tenantId, token } = await services.tenant();
    await ask(`/tenants/${tenantId}/credit`, { body: { amountCents: 100_000, ref: 'first' } });
    const key = await newKey(tenantId);
    await eventually(async () => expect((await key.chat({ max_tokens: 1 })).status).toBe(200));
    return { tenantId, token, ...key };
  }

  type Answer = Awaited<ReturnType<typeof send>>;
  const refusal = ({ status, json, headers }: Answer) => [status, json.error?.code, headers.get('retry-after')];

  describe('monthly budgets', () => {
    it('stop a tenant with 402 budget_reached within a second after they are set, until they are raised', async () => {
      const { tenantId, chat } = await customer();
      expect(await set(`/tenants/${tenantId}/budget`, { monthlyBudgetCents: 0 })).toMatchObject({
        json: { data: { keyId: null, monthlyBudgetCents: 0, setBy: 'operator', thresholdsPercent: [50, 80, 100] } },
      });
      expect(await inForceAfterMs(async () => expect((await chat()).status).toBe(402))).toBeLessThan(1_000);
      const answer = await chat();
      expect(refusal(answer)).toEqual([402, 'budget_reached', null]);
      expect(answer.json.error.type).toBe('billing_error');
      await set(`/tenants/${tenantId}/budget`, { monthlyBudgetCents: null });
      expect(await inForceAfterMs(async () => expect((await chat()).status).toBe(200))).toBeLessThan(1_000);
    });

    it('of one key do not affect other keys', async () => {
      const { tenantId, chat, id } = await customer();
      const other = await newKey(tenantId);
      await set(`/tenants/${tenantId}/keys/${id}/budget`, { monthlyBudgetCents: 1 });
      await eventually(async () => expect(refusal(await chat())).toEqual([402, 'budget_reached', null]));
      expect((await other.chat()).status).toBe(200);
      await set(`/tenants/${tenantId}/keys/${id}/budget`, { monthlyBudgetCents: 'default' });
      await eventually(async () => expect((await chat()).status).toBe(200));
    });

    it('are used up, clamp the last answer, and show the spending and the reached thresholds', async () => {
      const { tenantId, chat } = await customer();
      const before = month();
      await set(`/tenants/${tenantId}/budget`, { monthlyBudgetCents: 10 });
      await eventually(async () => {
        const { json } = await ask(`/tenants/${tenantId}/budget`);
        expect(json.data.monthlyBudgetCents).toBe(10);
      });
      let last: Answer | undefined;
      for (let answer = await chat(); answer.status !== 402; answer = await chat())
        if (answer.status === 200) last = answer;
      expect(last!.json.choices[0].finish_reason).toBe('length');
      const data = await eventually(async () => {
        const { data } = (await ask(`/tenants/${tenantId}/budget`)).json;
        // The last charge is in the books too, so less than a prompt and one token are left.
        expect(BigInt(data.spentNanos)).toBeGreaterThan(99_000_000n);
        return data;
      });
      expect(BigInt(data.spentNanos)).toBeLessThanOrEqual(100_000_000n);
      expect([before, month()]).toContain(data.period);
      expect(data.events.slice(0, 2)).toMatchObject([
        { thresholdPercent: 50, budgetCents: 10 },
        { thresholdPercent: 80, budgetCents: 10 },
      ]);
    });

    it.each<[string, unknown, number, string]>([
      ['a negative amount', { monthlyBudgetCents: -1 }, 400, 'invalid_budget'],
      ['a fraction', { monthlyBudgetCents: 0.5 }, 400, 'invalid_budget'],
      ['a word', { monthlyBudgetCents: 'much' }, 400, 'invalid_budget'],
      ['nothing', {}, 400, 'invalid_budget'],
      ['more than 2^53', { monthlyBudgetCents: 2 ** 53 }, 400, 'invalid_budget'],
      ['thresholds of zero', { monthlyBudgetCents: 1, thresholdsPercent: [0] }, 400, 'invalid_thresholds'],
      ['thresholds out of order', { monthlyBudgetCents: 1, thresholdsPercent: [9, 8] }, 400, 'invalid_thresholds'],
      ['no object', [], 400, 'invalid_json'],
    ])('refuse %s', async (_, body, status, code) => {
      const { tenantId } = await services.tenant();
      const answer = await put(`/tenants/${tenantId}/budget`, body);
      expect([answer.status, answer.json.error.code]).toEqual([status, code]);
    });

    it('get 404 for an unknown tenant, an unknown key, or a key of another tenant', async () => {
      const [{ tenantId }, other] = [await services.tenant(), await customer()];
      const body = { monthlyBudgetCents: 5 };
      for (const path of [
        `/tenants/${newId('ten')}/budget`,
        '/tenants/x/budget',
        `/tenants/${newId('ten')}/budgets`,
        `/tenants/${tenantId}/keys/${newId('key')}/budget`,
        `/tenants/${tenantId}/keys/x/budget`,
        `/tenants/${tenantId}/keys/${other.id}/budget`,
      ]) {
        expect((await ask(path)).status).toBe(404);
        if (!path.endsWith('budgets')) expect((await put(path, body)).status).toBe(404);
      }
      expect((await ask(`/tenants/${tenantId}/budget`, { method: 'DELETE' })).headers.get('allow')).toContain('PUT');
    });
  });

  describe('tollgate budget', () => {
    it('sets and shows the budgets of a tenant and its keys', async () => {
      const { tenantId, id } = await customer();
      const run = async (...args: string[]) => {
        const { code, stdout, stderr } = await tollgate('budget', ...args);
        expect([code, stderr]).toEqual([0, '']);
        return JSON.parse(stdout);
      };
      expect(await run('show', tenantId)).toMatchObject({ monthlyBudgetCents: null, setBy: 'configuration', keys: [] });
      expect(await run('set', tenantId, '100.00', '--thresholds', '90,10')).toMatchObject({
        monthlyBudgetCents: 10_000,
        thresholdsPercent: [10, 90],
        thresholdsSetBy: 'operator',
      });
      expect(await run('set', tenantId, '20', '--key', id)).toMatchObject({ keyId: id, monthlyBudgetCents: 2_000 });
      expect(await run('show', tenantId)).toMatchObject({
        monthlyBudgetCents: 10_000,
        keys: [{ keyId: id, monthlyBudgetCents: 2_000, setBy: 'operator' }],
      });
      expect(await run('set', tenantId, 'none', '--thresholds', 'default')).toMatchObject({
        monthlyBudgetCents: null,
        setBy: 'operator',
        thresholdsPercent: [50, 80, 100],
      });
      expect(await run('set', tenantId, 'default')).toMatchObject({ monthlyBudgetCents: null, setBy: 'configuration' });
      expect(await run('set', tenantId, '0')).toMatchObject({ monthlyBudgetCents: 0 });
      expect(await run('show', tenantId, '--key', id)).toMatchObject({ keyId: id, monthlyBudgetCents: 2_000 });
    });

    it.each([['-5'], ['1.234'], ['many'], ['5', '--thresholds', '0'], ['5', '--thresholds', 'x']])(
      'refuses %s',
      async (...args) => {
        const { code } = await runTollgate(['budget', 'set', newId('ten'), ...args], {
          TOLLGATE_DATA_DIR: directory.path,
        });
        expect(code).toBe(2);
      },
    );

    it('shows budgets as text for people', async () => {
      const { tenantId } = await services.tenant();
      await set(`/tenants/${tenantId}/budget`, { monthlyBudgetCents: 12_345 });
      const { stdout } = await runTollgate(['budget', 'show', tenantId], { TOLLGATE_DATA_DIR: directory.path });
      expect(stdout).toMatch(/Monthly budget: +123\.45 USD\n/);
      expect(stdout).toContain('No key has a budget of its own.');
    });
  });
}
