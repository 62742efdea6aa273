import { newId } from '@tollgate/contracts';
import { eventually } from '@tollgate/testing';
import { type Asked, askOperator, send } from '../ask';
import { useServices } from '../services';
import { runTollgate, useDataDirectory } from '../tollgate-process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

// Months are not closed automatically, because the tests use a past one.
const services = useServices({ invoiceCloseDelayMs: 20 * 365 * 24 * 3_600_000 });
const directory = useDataDirectory(services);
const ask = askOperator(services);
const tollgate = async (...args: string[]) => {
  const { code, stdout, stderr } = await runTollgate(args, { TOLLGATE_DATA_DIR: directory.path });
  return `${code} ${stdout}${stderr}`.trim();
};
async function expectRefusal(path: string, asked: Asked, status: number, code: string) {
  const answer = await ask(path, asked);
  expect([answer.status, answer.json.error.code]).toEqual([status, code]);
}

/** Creates a tenant whose requests were charged this many cents in October 2026, by events like a gateway's. */
async function used(cents: number, requests = 3) {
  const { tenantId, token } = await services.tenant();
  await ask(`/tenants/${tenantId}/credit`, { body: { amountCents: 1_000, ref: 'first' } });
  const endedAt = '2026-10-31T23:59:59.999Z';
  const price = { version: 'test', inputFemtos: '0', cachedInputFemtos: '0', outputFemtos: '0' };
  const events = Array.from({ length: requests }, (_, i) => {
    const requestNanos = String(BigInt(cents) * 10_000_000n + BigInt(i));
    return {
      id: newId('req', Date.parse(endedAt) - 1_000 + i),
      tenantId,
      keyId: newId('key'),
      model: 'sim-small',
      kind: 'chat' as const,
      stream: false,
      price: { ...price, requestNanos },
      startedAt: endedAt,
      promptTokens: 10 + i,
      cachedTokens: 0,
      completionTokens: 5,
      costNanos: requestNanos,
      overrunNanos: '0',
      estimated: i === 0,
      outcome: 'complete' as const,
      endedAt,
    };
  });
  await services.messages.publish('usage-events', events);
  const entry = await eventually(async () => {
    const { data } = (await ask(`/tenants/${tenantId}/credit`)).json;
    const usage = data.entries.filter((one: { type: string }) => one.type === 'usage');
    expect(usage.reduce((sum: number, one: { amountCents: number }) => sum + one.amountCents, 0)).toBe(
      -cents * requests,
    );
    return usage[0];
  });
  return { tenantId, token, events, entry };
}

describe('the requests of an entry', () => {
  it('have a model, key, tokens and cost, and each leads to its entry and invoice', async () => {
    const { tenantId, events, entry } = await used(7);
    const { status, json } = await ask(`/entries/${entry.id}/requests?limit=2`);
    expect(status).toBe(200);
    expect(json.entry).toMatchObject({ id: entry.id, type: 'usage', tenantId, period: '2026-10' });
    const ids = events.map((event) => event.id);
    for (const row of json.data) {
      const sent = events[ids.indexOf(row.id)]!;
      expect(row).toMatchObject({ id: sent.id, keyId: sent.keyId, costNanos: sent.costNanos, endedAt: sent.endedAt });
      const { price, ...rest } = sent;
      expect(row.event).toEqual({ ...rest, reasoningTokens: 0, priceVersion: price.version });
    }
    if (json.nextCursor !== null)
      expect((await ask(`/entries/${entry.id}/requests?after=${json.nextCursor}`)).json.data).not.toHaveLength(0);

    const last = json.data[0].id;
    const before = (await ask(`/requests/${last}`)).json.data;
    expect(before).toMatchObject({
      event: { id: last },
      charge: { id: last, period: '2026-10' },
      entry: { id: entry.id },
      ...{ invoice: null, monthClosed: false },
    });
    expect(await tollgate('usage', '--request', last)).toMatch(
      new RegExp(
        `^0 Request:  ${last}\nEvent:    sim-small, 1\\d \\+ 5 tokens.*\nCharge:   0\\.07.*billed in 2026-10\n` +
          `Entry:    ${entry.id}.*\nInvoice:  its month is open$`,
      ),
    );
    // The id that the customer knows.
    expect((await ask(`/requests/${last.replace('req_', 'chatcmpl-')}`)).json.data).toEqual(before);
    expect(await tollgate('usage', '--entry', entry.id)).toMatch(
      /^0 ent_.*usage, -0\.\d+ USD.*REQUEST .*req_\w+ +sim-small +key_/s,
    );
    expect(
      await tollgate('usage', tenantId, '--from', '2026-10-01', '--to', '2026-11-01', '--group-by', 'model'),
    ).toMatch(
      /sim-small( +[0310]){4} +33 +0 +15 +0 +0\.210000003 USD\nall( +[0310]){4} +33 +0 +15 +0 +0\.210000003 USD$/,
    );
    expect(await tollgate('usage')).toMatch(/^2 tollgate: Give exactly one/);
  });

  it('are found by the x-request-id that their callers chose, newest first', async () => {
    const { tenantId, token } = await services.tenant();
    await ask(`/tenants/${tenantId}/credit`, { body: { amountCents: 1_000, ref: 'first' } });
    const { json } = await send(`${services.publicUrl}/_api/v1/keys`, { token, body: { name: 'k' } });
    const chat = async (requestId: string) => {
      const body = { model: 'sim-small', messages: [{ role: 'user', content: 'Hello' }], max_tokens: 1 };
      const headers = { 'x-request-id': requestId };
      return send(`${services.publicUrl}/v1/chat/completions`, { token: json.data.key, body, headers });
    };
    const name = `order-${tenantId.slice(4, 14)}`;
    const ids: string[] = [];
    const found = async () => {
      const { status, json } = await ask(`/requests?callerRequestId=${name}`);
      expect([status, json.data.map(({ id }: { id: string }) => id)]).toEqual([200, [...ids].reverse()]);
      return json.data;
    };
    await found();
    expect(await tollgate('usage', '--request', name)).toMatch(/^1 tollgate: No usage is recorded .*'order-/);
    for (const chosen of [name, `${name}x`, name]) {
      // A key is in force within a second.
      const answer = await eventually(async () => {
        const answer = await chat(chosen);
        expect([answer.status, answer.headers.get('x-request-id')]).toEqual([200, chosen]);
        return answer;
      });
      if (chosen !== name) continue;
      ids.push(answer.headers.get('x-tollgate-request-id')!);
      const [newest] = await eventually(found, { timeoutMs: 20_000 });
      expect(newest).toMatchObject({ tenantId, keyId: json.data.id, model: 'sim-small', outcome: 'complete' });
      const printed = await tollgate('usage', '--request', name);
      if (ids.length === 1) expect(printed).toMatch(new RegExp(`^0 Request:  ${ids[0]}\nEvent:    sim-small`));
      else expect(printed).toMatch(new RegExp(`^0 REQUEST .*\n${ids[1]} .*\n${ids[0]} `));
    }
    for (const query of ['', '?callerRequestId=', '?callerRequestId=a%20b', `?callerRequestId=${'x'.repeat(65)}`])
      await expectRefusal(`/requests${query}`, {}, 400, 'invalid_parameter');
  });

  it('of an unknown entry get not_found, and an invalid page gets invalid_parameter', async () => {
    for (const path of [
      `/entries/${newId('ent')}/requests`,
      '/entries/x/requests',
      `/requests/${newId('req')}`,
      '/requests/x',
    ])
      await expectRefusal(path, {}, 404, 'not_found');
    await expectRefusal(`/entries/${newId('ent')}/requests?limit=0`, {}, 400, 'invalid_parameter');
    await expectRefusal(`/tenants/${newId('ten')}/usage`, {}, 404, 'not_found');
    await expectRefusal(`/tenants/${newId('ten')}/usage?from=x`, {}, 400, 'invalid_parameter');
  });
});

it('heads of the journal can be kept in a file and compared with the journal later', async () => {
  const { tenantId } = await used(5);
  const file = join(directory.path, 'heads.txt');
  const kept = (await tollgate('journal', 'heads')).slice('0 '.length);
  expect(kept).toMatch(new RegExp(`^${tenantId} [2-4] [0-9a-f]{64}$`, 'm'));
  // The heads may also be in a line of a log.
  writeFileSync(file, JSON.stringify({ level: 30, heads: kept.split('\n') }));
  expect(await tollgate('journal', 'compare', file)).toMatch(/^0 Unchanged: the journal has \d+ heads?/);
  const changed = kept.replace(/^(ten_\w+ \d+ )[0-9a-f]{64}/, (_, place: string) => place + '0'.repeat(64));
  writeFileSync(file, changed);
  expect(await tollgate('journal', 'compare', file)).toMatch(
    /^1 THE JOURNAL WAS CHANGED\. Heads that are no longer in it: 1 of \d+\..*entry \d: 0{64}.*ent_/s,
  );
  writeFileSync(file, 'nothing');
  expect(await tollgate('journal', 'compare', file)).toMatch(/^1 tollgate: .* has no heads/);
});

describe('invoices', () => {
  it('are closed, listed, shown to the tenant and voided', async () => {
    const { tenantId, token } = await used(11);
    const management = async () =>
      (await send(`${services.publicUrl}/_api/v1/billing`, { token })).json.data.invoices.find(
        (one: { period: string }) => one.period === '2026-10',
      );
    expect(await tollgate('invoice', 'close', '2026-10', tenantId)).toBe(
      '0 1 invoice issued; 0 months closed without one.',
    );
    const { json } = await ask(`/invoices?tenantId=${tenantId}`);
    expect(json).toEqual({
      data: [
        {
          tenantId,
          period: '2026-10',
          amountCents: 33,
          status: 'paid',
          accountingNumber: expect.any(Number),
          createdAt: expect.any(String),
          voidedAt: null,
        },
      ],
      currency: 'USD',
      nextCursor: null,
    });
    const [{ accountingNumber, createdAt }] = json.data;
    expect(await management()).toEqual({
      period: '2026-10',
      amountCents: 33,
      status: 'paid',
      accountingNumber,
      createdAt,
    });
    expect(await tollgate('invoice', 'list', '--month', '2026-10')).toContain(`${tenantId}  2026-10  0.33 USD  paid`);
    const voided = ['invoice', 'void', String(accountingNumber), '--reason', 'wrong price'];
    expect(await tollgate(...voided)).toMatch(/^2 .*give --yes/);
    expect(await tollgate(...voided, '--yes')).toBe(
      `0 Invoice ${accountingNumber} is void: 0.33 USD went back to ${tenantId}. Balance: 10.00 USD.`,
    );
    expect(await management()).toMatchObject({ status: 'void', accountingNumber });
    const path = `/invoices/${accountingNumber}/void`;
    expect((await ask(path, { body: { reason: 'wrong price' } })).json.data).toMatchObject({ balanceCents: 1_000 });
    await expectRefusal(path, { body: { reason: 'another' } }, 409, 'ref_conflict');
    const report = (await ask('/reconcile', { method: 'POST' })).json.data;
    expect(JSON.stringify(report)).toContain('"differences":[]');
  });

  it('get the field’s code for an invalid request', async () => {
    const running = new Date().toISOString().slice(0, 7);
    for (const period of [running, '9999-12', '2026-13', 'x', 5, undefined])
      await expectRefusal('/invoices/close', { body: { period } }, 400, 'invalid_period');
    await expectRefusal('/invoices/close', { body: { period: '2026-01', tenantId: newId('ten') } }, 404, 'not_found');
    await expectRefusal('/invoices/1000000/void', { body: { reason: 'x' } }, 404, 'not_found');
    await expectRefusal('/invoices/x/void', { body: { reason: 'x' } }, 404, 'not_found');
    await expectRefusal('/invoices/1/void', { body: {} }, 400, 'invalid_reason');
    await expectRefusal('/invoices?after=x', {}, 400, 'invalid_parameter');
    await expectRefusal(`/invoices?tenantId=${newId('ten')}`, {}, 404, 'not_found');
    expect(await tollgate('invoice', 'close', '2026-13')).toMatch(/^2 .*YYYY-MM/s);
  });
});

it('tollgate invoice list shows the open months of a tenant, without a number, and only its own', async () => {
  const { tenantId } = await used(33);
  const list = (...args: string[]) => tollgate('invoice', 'list', tenantId, ...args);
  await eventually(async () =>
    expect(await list('--month', '2026-10')).toMatch(
      new RegExp(`^0 NUMBER [^\\n]*\\n- +${tenantId} +2026-10 +0\\.99 USD +open +-(\n|$)`),
    ),
  );
  expect(await list('--month', '2026-09')).toBe('0 No invoices yet.');
  expect((await tollgate('invoice', 'list', '--month', '2026-10')).includes(tenantId)).toBe(false);
  const none = await tollgate('invoice', 'list', '--month', '2020-01');
  expect(none).toContain('No invoices are issued yet.');
  expect(none).toContain(
    'Months that are still open are not listed. Those of one tenant: tollgate invoice list <tenant>',
  );
});
