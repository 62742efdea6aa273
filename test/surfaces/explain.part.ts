import { newId } from '@tollgate/contracts';
import { eventually } from '@tollgate/testing';
import { usageEvent } from '../../apps/metering/src/sample-events.fixture';
import { CHARGED, useComplaints, WORDS } from './complaints';
import type { Services } from './services';

const NARROW_TOKENS = 100;

/** Complaints of customers, played at the public port and explained by the operator API and its command. */
export function explainTests(services: Services): void {
  const { ask, tollgate, explained, customer } = useComplaints(services);

  it('"I was billed twice" shows both requests of one x-request-id, each with its own charge and entry', async () => {
    const { tenantId, keyId, chat } = await customer();
    const name = `order-${tenantId.slice(-12)}`;
    const ids: string[] = [];
    for (let n = 0; n < 2; n++)
      await eventually(async () => {
        const answer = await chat({}, { 'x-request-id': name });
        expect(answer.status).toBe(200);
        ids.unshift(answer.headers.get('x-tollgate-request-id')!);
      });
    const both = await eventually(async () => {
      const found = await explained(name, 2);
      for (const one of found) expect(one.charge).not.toBeNull();
      return found;
    }, CHARGED);
    expect(both.map(({ id }: { id: string }) => id)).toEqual(ids);
    for (const one of both) {
      expect(one).toMatchObject({ state: 'served', tenantId, callerRequestId: name, key: { name: 'production' } });
      expect(one.served).toMatchObject({
        keyId,
        outcome: 'complete',
        backend: 'simulator:',
        costNanos: one.charge.costNanos,
      });
      expect(one.served.life).toMatchObject({ key: [expect.any(Number), expect.any(Number), expect.any(Number)] });
    }
    const text = await tollgate('explain', ids[0]!);
    expect(text).toMatch(
      new RegExp(
        `^0 Request:  ${ids[0]} \\(x-request-id ${name}\\)\n` +
          `Key:      ${keyId} \\(production\\)\n.*\nStarted: .*sim-large.*\n` +
          'Limits:   key \\d+ requests and \\d+ tokens a minute.*\nHold: +\\d+\\.\\d{9} USD\nBackend:  simulator:\n' +
          'Progress: \\d+ prompt tokens, 20 output tokens\n' +
          'Ended: .*complete: the whole answer was sent\nSettled: .*\n' +
          'Event: .*\nCharge: .*USD, billed in .*\nEntry: .*\nInvoice:  its month is open$',
      ),
    );
    expect(await tollgate('explain', name)).toMatch(/^0 2 requests have this id, the newest first\./);
    expect(await tollgate('explain', ids[0]!.replace('req_', 'chatcmpl-'))).toBe(text);
    expect(JSON.parse((await tollgate('explain', ids[0]!, '--json')).slice(2)).requests[0].id).toBe(ids[0]);
    expect(await tollgate('explain', ids[0]!, '--tenant', newId('ten'))).toMatch(
      /^1 tollgate: No usage and no refused/,
    );
    expect(await tollgate('explain', newId('req'))).toMatch(/ give its --tenant as well\.$/);
  });

  it('"my stream broke" shows the backend that broke off, what was delivered, and its charge', async () => {
    const { tenantId, keyId, chat } = await customer();
    const faults = [{ kind: 'cut', afterChunks: 3 }];
    const cut = { stream: true, simulator: { answerTokens: 20, faults } };
    const answer = await eventually(async () => {
      const one = await chat(cut);
      expect(one.text).toContain('upstream_error');
      expect(one.status).toBe(200);
      return one;
    });
    const id = answer.headers.get('x-tollgate-request-id')!;
    const [{ served }] = await explained(id);
    expect(served).toMatchObject({ outcome: 'upstream_error', completionTokens: 3, stream: true });
    expect(served.life).toMatchObject({
      firstMs: expect.any(Number),
      failed: [{ backend: 'simulator:', why: 'failed' }],
    });
    expect(await tollgate('explain', id)).toMatch(
      new RegExp(
        '\nFailed: +simulator: failed.*\nProgress: .*3 output tokens, counted.*, the first after .*\n' +
          'Ended: .*the backend broke off',
      ),
    );

    // Nothing was delivered: no usage, and no charge.
    const none = await chat({ simulator: { faults: [{ kind: 'status', status: 500 }] } });
    expect(none.status).toBe(502);
    const [{ state, refused }] = await explained(none.headers.get('x-tollgate-request-id')!);
    expect(state).toBe('refused');
    expect(refused).toMatchObject({ code: 'upstream_error', model: 'sim-large', heldNanos: expect.any(String) });
    expect(refused.failed[0]).toEqual({ backend: 'simulator:', why: 'failed', status: 500 });
    expect(await tollgate('explain', none.headers.get('x-tollgate-request-id')!)).toMatch(
      /\nFailed: +.+Z, upstream_error\nModel: +sim-large\nWhy: +no backend gave an answer\nBackends: simulator: failed/,
    );
    // Usage has what was billed. The others are beside it, by code.
    const usage = async (query: string) => (await ask(`/tenants/${tenantId}/usage${query}`)).json.data;
    const failure = { code: 'upstream_error', requests: 1 };
    for (const query of ['', `?keyId=${keyId}`]) {
      const { totals, refusals } = await usage(query);
      expect([totals.failed, refusals]).toEqual([1, expect.arrayContaining([failure])]);
    }
    expect((await usage(`?keyId=${newId('key')}`)).refusals).toEqual([]);
    expect((await usage('?model=sim-large')).refusals).toBeNull();
    expect(await tollgate('usage', tenantId)).toMatch(
      /\n\nWithout usage, and free of charge:\nERROR +REQUESTS\n[^]*upstream_error +1\b/,
    );
  });

  it('about a request that was at fault shows the model that it asked for, and the refused parameter', async () => {
    const { chat, keyId } = await customer();
    const unknown = await eventually(async () => {
      const answer = await chat({ model: 'sim-lrage' });
      expect(answer.json.error.code).toBe('model_not_found');
      return answer;
    });
    const [{ refused }] = await explained(unknown.headers.get('x-tollgate-request-id')!);
    expect(refused).toMatchObject({ code: 'model_not_found', model: 'sim-lrage', param: 'model' });
    const wrong = await chat({ messages: [{ role: 'nobody', content: WORDS }] });
    const id = wrong.headers.get('x-tollgate-request-id')!;
    await explained(id);
    const { param, code } = wrong.json.error;
    expect(param).toBe('messages[0].role');
    expect(await tollgate('explain', id)).toMatch(
      /\nModel: +sim-large\nParameter: +messages\[0\]\.role\nWhy: +its parameter messages\[0\]\.role was refused\n/,
    );
    // A text that is no name of a model is not kept.
    const words = await chat({ model: WORDS });
    const [none] = await explained(words.headers.get('x-tollgate-request-id')!);
    expect(none.refused).not.toHaveProperty('model');
    const text = await tollgate('explain', '--key', keyId);
    expect(text).toContain(
      `model_not_found (sim-lrage, model): its model sim-lrage does not exist, or the key may not`,
    );
    expect(text).toContain(`${code} (sim-large, messages[0].role)`);
  });

  it('about a stream that ended with an error shows that the store did not answer after its text', async () => {
    const { tenantId, keyId } = await customer();
    const life = { key: [1, 2, 3], tenant: [4, 5, 6], heldNanos: '9000000000', late: true } as const;
    const event = usageEvent({ tenantId, keyId, outcome: 'complete', stream: true, life });
    await services.messages.publish('usage-events', [event]);
    expect((await explained(event.id))[0].served.life.late).toBe(true);
    expect(await tollgate('explain', event.id)).toMatch(
      /\nEnded: .*, complete: all of the text was sent\. Then .*: the stream ended with an error in place/,
    );
  });

  it('"another model answered" shows the model that was asked for, and the fallback that served', async () => {
    const { tenantId, keyId } = await customer();
    const life = { key: [1, 2, 3], tenant: [4, 5, 6], heldNanos: '9000000000', asked: 'sim-large' } as const;
    const event = usageEvent({ tenantId, keyId, model: 'sim-small', backend: 'simulator:', life });
    await services.messages.publish('usage-events', [event]);
    const [{ served }] = await explained(event.id);
    expect(served).toMatchObject({ model: 'sim-small', life: { asked: 'sim-large' } });
    expect(await tollgate('explain', event.id)).toMatch(
      /\nStarted: .*, sim-small, chat\nFallback: +of sim-large, which was asked for\nLimits: /,
    );
  });

  it('about a running request shows its hold, to its tenant alone, and later that its client left', async () => {
    const { tenantId, keyId, key, body } = await customer();
    const { tenantId: other } = await customer();
    const leaving = new AbortController();
    const faults = [{ kind: 'hang', afterChunks: 2 }];
    const response = await eventually(async () => {
      const one = await fetch(`${services.publicUrl}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify({ ...body, stream: true, simulator: { faults } }),
        signal: leaving.signal,
      });
      expect(one.status).toBe(200);
      return one;
    });
    await response.body!.getReader().read();
    const id = response.headers.get('x-tollgate-request-id')!;
    const [running] = await explained(id, 1, `?tenantId=${tenantId}`);
    expect(running).toMatchObject({ state: 'running', tenantId, key: { id: keyId }, served: null });
    expect(running.hold).toMatchObject({ state: 'pending', running: { keyId, model: 'sim-large', stream: true } });
    expect(await tollgate('explain', id, '--tenant', tenantId)).toMatch(
      new RegExp(
        `\nKey: +${keyId} \\(production\\)\n.*\nStarted: .*sim-large, chat, streamed\n` +
          'Running: +it holds 0\\.\\d{9} USD.*\n' +
          'Progress: .*\nLimits: +recorded at its end',
      ),
    );
    for (const [query, needsTenant] of [
      ['', true],
      [`?tenantId=${other}`, false],
    ] as const) {
      const { error } = (await ask(`/explain/requests/${id}${query}`)).json;
      expect([error.code, error.message.includes('tenantId')]).toEqual(['not_found', needsTenant]);
      expect(error.message).toContain('x-tollgate-original-request-id');
    }
    leaving.abort();
    const [left] = await explained(id);
    expect(left.served).toMatchObject({ outcome: 'client_closed', completionTokens: 2 });
  });

  it('"429 although idle" shows the limit of tokens, and how many the request needed', async () => {
    const [plan] = services.config.plans;
    const [profile] = plan!.profiles;
    const limits = { ...profile!.limits, tokensPerMinute: NARROW_TOKENS };
    services.config.plans.push({ ...plan!, id: 'tight', profiles: [{ ...profile!, limits }] });
    const { keyId, chat } = await customer('tight');
    const refusal = await eventually(async () => {
      const answer = await chat({ max_tokens: 10 * NARROW_TOKENS });
      expect(answer.json.error.code).toBe('tokens_limit_exceeded');
      return answer;
    });
    const id = refusal.headers.get('x-tollgate-request-id')!;
    const [{ refused }] = await explained(id);
    const by = { what: 'tokens', scope: 'key', limit: NARROW_TOKENS, remaining: expect.any(Number) };
    expect(refused.by).toMatchObject({ ...by, until: expect.any(String) });
    expect(refused.by.needs).toBeGreaterThan(10 * NARROW_TOKENS);
    expect(await tollgate('explain', id)).toMatch(
      new RegExp(
        `\nWhy: +the limit of tokens per minute \\(key\\), limit 100, \\d+ left, ${refused.by.needs} tokens needed`,
      ),
    );
    const { data } = (await ask(`/explain/keys/${keyId}`)).json;
    expect(data).toMatchObject({ admitted: true, obstacles: [], limits: { key: { tokensPerMinute: NARROW_TOKENS } } });
    expect(data.refused).toContainEqual(refused);
  });

  it('"my key stopped" shows what stands in its way now, and what refused its requests', async () => {
    const { tenantId, keyId, chat } = await customer();
    const { tenantId: other } = await customer();
    await eventually(async () => expect((await chat()).status).toBe(200));
    expect(await tollgate('explain', '--key', keyId)).toMatch(
      new RegExp(
        `^0 Admitted now: +yes\nKey: +${keyId} \\(production\\), active, profile default\n` +
          'Tenant: .*\nModels: .*sim-large',
      ),
    );
    const path = `/tenants/${tenantId}/keys/${keyId}`;
    await ask(path, { method: 'PATCH', body: { models: ['sim-small'] } });
    expect((await ask(`/explain/keys/${keyId}`)).json.data.models).toEqual(['sim-small']);
    await ask(path, { method: 'PATCH', body: { models: null } });
    await ask(`/tenants/${tenantId}/keys/${keyId}/budget`, { method: 'PUT', body: { monthlyBudgetCents: 0 } });
    await eventually(async () => expect((await chat()).json.error.code).toBe('budget_reached'));
    await ask(`/tenants/${tenantId}/suspend`, { method: 'POST' });
    await eventually(async () => expect((await chat()).json.error.code).toBe('tenant_suspended'));
    await ask(`/tenants/${tenantId}/keys/${keyId}`, { method: 'DELETE' });
    const stopped = await eventually(async () => {
      const answer = await chat();
      expect(answer.status).toBe(401);
      return answer;
    });
    const [{ refused }] = await explained(stopped.headers.get('x-tollgate-request-id')!);
    expect(refused).toMatchObject({ keyId, tenantId, code: 'invalid_api_key', by: { what: 'key_revoked' } });
    const text = await tollgate('explain', '--key', keyId);
    expect(text).toMatch(
      /^0 Admitted now: +no\nIn the way: +the key, .*, is revoked\nIn the way: +the tenant is suspended/,
    );
    expect(text).toMatch(
      /\nIn the way: +the budget of this month is spent \(key\), until \d{4}-\d\d-01T00:00:00\.000Z/,
    );
    expect(text).toMatch(
      /refused requests that are kept:\n.*the key, .*, is revoked\n[^]*the budget of this month is spent/,
    );

    expect((await ask(`/explain/keys/${keyId}?tenantId=${tenantId}`)).status).toBe(200);
    for (const path of [`${keyId}?tenantId=${other}`, newId('key'), 'x'])
      expect((await ask(`/explain/keys/${path}`)).json.error.code).toBe('not_found');
    expect((await ask(`/explain/keys/${keyId}?tenantId=x`)).json.error.code).toBe('invalid_parameter');
  });

  it('about an unknown request is refused, and so is wrong usage', async () => {
    for (const name of [newId('req'), 'x'.repeat(65), 'a%20b'])
      expect((await ask(`/explain/requests/${name}`)).json.error.code).toBe('not_found');
    for (const args of [[], ['req_1', '--key', newId('key')]])
      expect(await tollgate('explain', ...args)).toBe('2 tollgate: Give exactly one of: a request, --key.');
  });
}
