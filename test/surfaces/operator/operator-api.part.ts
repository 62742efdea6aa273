import { isWellFormedCredential, newId, OPERATOR_SCOPES, SCOPES } from '@tollgate/contracts';
import { eventually, inForceAfterMs } from '@tollgate/testing';
import { type Asked, askOperator, send } from '../ask';
import { OPERATOR_SECRET, type Services } from '../services';

export function operatorApiTests(services: Services): void {
  const ask = askOperator(services);

  async function expectRefusal(path: string, asked: Asked, status: number, code: string) {
    const answer = await ask(path, asked);
    expect(answer.json).toEqual({ error: { code, message: expect.any(String) } });
    expect(answer.status).toBe(status);
    return answer;
  }

  let tenantId: string;
  beforeAll(async () => {
    tenantId = (await ask('/tenants', { body: { name: ' Acme ' } })).json.data.id;
  });

  describe('the operator API', () => {
    it('answers 401 without the secret and to a wrong one', async () => {
      await expectRefusal('/tenants', { token: null }, 401, 'missing_credential');
      await expectRefusal('/tenants', { authorization: `Basic ${OPERATOR_SECRET}` }, 401, 'missing_credential');
      for (const wrong of [`${OPERATOR_SECRET}x`, OPERATOR_SECRET.slice(1), 'x']) {
        await expectRefusal('/tenants', { token: wrong }, 401, 'invalid_secret');
      }
    });

    it('requires the secret on every route but metrics, probes and the document of the API', async () => {
      const routes: [string, string][] = [
        ['POST', '/tenants'],
        ['GET', `/tenants/${tenantId}`],
        ['GET', `/tenants/${tenantId}/credit`],
        ['POST', `/tenants/${tenantId}/credit`],
        ['POST', `/tenants/${tenantId}/credit/refund`],
        ['POST', `/tenants/${tenantId}/credit/adjust`],
        ['POST', `/tenants/${tenantId}/suspend`],
        ['POST', `/tenants/${tenantId}/resume`],
        ['GET', `/tenants/${tenantId}/keys`],
        ['POST', `/tenants/${tenantId}/keys`],
        ['DELETE', `/tenants/${tenantId}/keys/${newId('key')}`],
        ['GET', `/tenants/${tenantId}/tokens`],
        ['POST', `/tenants/${tenantId}/tokens`],
        ['DELETE', `/tenants/${tenantId}/tokens/${newId('tok')}`],
        ['POST', '/reconcile'],
      ];
      for (const [method, path] of routes)
        await expectRefusal(path, { method, token: null }, 401, 'missing_credential');
    });

    it('serves the probes and metrics without the secret', async () => {
      const alive = await send(`${services.operatorUrl}/livez`, {});
      expect([alive.status, alive.json]).toEqual([200, { status: 'ok' }]);
      const ready = await send(`${services.operatorUrl}/readyz`, {});
      expect([ready.status, ready.json]).toEqual([200, { status: 'ok', dependencies: {} }]);
      const metrics = await fetch(`${services.operatorUrl}/metrics`);
      expect(metrics.headers.get('content-type')).toContain('text/plain');
      expect(await metrics.text()).toContain('# TYPE tollgate_');
    });

    it('does not serve the public surfaces', () => expectRefusal('/../../_api/v1/keys', {}, 404, 'not_found'));
  });

  describe('tenants', () => {
    it('are created, listed newest first and read', async () => {
      const { status, json } = await ask('/tenants', { body: { name: 'Second', plan: 'default' } });
      expect(status).toBe(201);
      expect(json.data).toMatchObject({ name: 'Second', plan: 'default', status: 'active' });
      const list = (await ask('/tenants?limit=1')).json;
      expect(list).toEqual({ data: [json.data], nextCursor: json.data.id });
      expect((await ask(`/tenants?after=${list.nextCursor}`)).json.data[0]).toMatchObject({
        id: tenantId,
        name: 'Acme',
      });
      expect((await ask(`/tenants/${json.data.id}`)).json).toEqual({ data: json.data });
    });

    it('are refused with the field’s code', async () => {
      await expectRefusal('/tenants', { body: {} }, 400, 'name_required');
      await expectRefusal('/tenants', { body: { name: 1 } }, 400, 'invalid_name');
      for (const name of ['Ac\u202eme', 'Ac\u2028me', '\u200b']) {
        await expectRefusal('/tenants', { body: { name } }, 400, 'invalid_name');
        await expectRefusal(`/tenants/${tenantId}/keys`, { body: { name } }, 400, 'invalid_name');
        await expectRefusal(`/tenants/${tenantId}/tokens`, { body: { name, scopes: SCOPES } }, 400, 'invalid_name');
      }
      await expectRefusal('/tenants', { body: { name: 'x', plan: 'no such plan' } }, 400, 'invalid_plan');
      await expectRefusal('/tenants', { body: { name: 'x', plan: 'nothing' } }, 400, 'invalid_plan');
      await expectRefusal('/tenants?limit=0', {}, 400, 'invalid_parameter');
      await expectRefusal('/tenants', { text: '{' }, 400, 'invalid_json');
      await expectRefusal(
        '/tenants',
        { text: '{}', headers: { 'content-type': 'text/plain' } },
        415,
        'unsupported_media_type',
      );
      await expectRefusal('/tenants', { text: 'x'.repeat(65_537) }, 413, 'payload_too_large');
    });

    it.each<[path: string, body: object | undefined, message: string]>([
      ['/tenants', { name: 'x', plan: 'gold' }, 'plan must name a plan of tollgate.yaml; "gold" is not one.'],
      ['/requests', undefined, 'callerRequestId is required.'],
      ['/invoices?period=november', undefined, 'period must have a form such as 2026-10.'],
      ['/config/check', {}, 'currency is required.'],
      ['/journal/compare', { heads: ['x'] }, 'heads.0 must be an object.'],
      ['/journal/compare', { heads: [{ tenantId: newId('ten') }] }, 'heads.0.sequence is required.'],
      [
        '/operator-tokens',
        { name: 'x', scopes: ['all'] },
        `scopes: each must be one of: ${OPERATOR_SCOPES.join(', ')}.`,
      ],
      ['/no-such-path', undefined, 'No endpoint has this path. See /_operator/v1/openapi.yaml.'],
    ])('%s says what is wrong with %j', async (path, body, message) => {
      expect((await ask(path, body && { body })).json.error.message).toBe(message);
    });

    it('that do not exist are not_found on every route', async () => {
      for (const id of [newId('ten'), 'x', '%00']) {
        for (const path of ['', '/credit', '/keys', '/tokens'])
          await expectRefusal(`/tenants/${id}${path}`, {}, 404, 'not_found');
        await expectRefusal(`/tenants/${id}/credit`, { body: { amountCents: 1, ref: 'r' } }, 404, 'not_found');
        await expectRefusal(`/tenants/${id}/keys`, { body: { name: 'k' } }, 404, 'not_found');
        await expectRefusal(`/tenants/${id}/tokens`, { body: { name: 't', scopes: SCOPES } }, 404, 'not_found');
        await expectRefusal(`/tenants/${id}/keys/${newId('key')}`, { method: 'DELETE' }, 404, 'not_found');
      }
    });
  });

  describe('credit', () => {
    it('is added once per ref, and shown with its currency', async () => {
      const body = { amountCents: 1_000, ref: 'first' };
      for (let time = 0; time < 2; time++) {
        const { status, json } = await ask(`/tenants/${tenantId}/credit`, { body });
        expect(status).toBe(201);
        expect(json.data).toMatchObject({
          balanceCents: 1_000,
          created: time === 0,
          currency: 'USD',
          entry: { amountCents: 1_000, ref: 'first' },
        });
      }
      await expectRefusal(`/tenants/${tenantId}/credit`, { body: { ...body, amountCents: 1 } }, 409, 'ref_conflict');
      for (const ref of ['2nd', '3rd']) await ask(`/tenants/${tenantId}/credit`, { body: { amountCents: 5, ref } });
      const { json } = await ask(`/tenants/${tenantId}/credit?limit=2`);
      expect(json.data).toMatchObject({ balanceCents: 1_010, carriedNanos: '0', currency: 'USD' });
      expect(json.data.entries).toHaveLength(2);
      expect(json.nextCursor).toBe(json.data.entries[1].id);
    });

    it('shows the spendable amount as soon as admission knows it', () =>
      eventually(async () => {
        const { json } = await ask(`/tenants/${tenantId}/credit`);
        expect(json.data.spendableCents).toBe(1_010);
      }));

    it.each([
      [{}, 'invalid_amount'],
      [{ amountCents: 0, ref: 'r' }, 'invalid_amount'],
      [{ amountCents: -5, ref: 'r' }, 'invalid_amount'],
      [{ amountCents: 1.5, ref: 'r' }, 'invalid_amount'],
      [{ amountCents: '5', ref: 'r' }, 'invalid_amount'],
      [{ amountCents: 1e13, ref: 'r' }, 'invalid_amount'],
      [{ amountCents: 5, ref: 'r', source: 'metering' }, 'invalid_source'],
      [{ amountCents: 5, ref: 'r', source: 'Stripe' }, 'invalid_source'],
      [{ amountCents: 5 }, 'invalid_ref'],
      [{ amountCents: 5, ref: '' }, 'invalid_ref'],
      [{ amountCents: 5, ref: 'a\u0000' }, 'invalid_ref'],
    ])('refuses %j with %s', (body, code) => expectRefusal(`/tenants/${tenantId}/credit`, { body }, 400, code));

    it.each(['metering', 'invoice', 'last-cent'])('says that the source %s is reserved', async (source) => {
      const { json } = await ask(`/tenants/${tenantId}/credit`, { body: { amountCents: 5, ref: 'r', source } });
      expect(json.error.message).toMatch(new RegExp(`"${source}".* reserved`));
    });
  });

  describe('keys and tokens', () => {
    it('are shown once, listed without their value, and revoked', async () => {
      const cases = [
        ['keys', 'key', { name: 'k', profile: 'default' }],
        ['tokens', 'token', { name: 't', scopes: ['usage:read'] }],
      ] as const;
      for (const [path, kind, body] of cases) {
        const made = await ask(`/tenants/${tenantId}/${path}`, { body });
        expect(made.status).toBe(201);
        expect(made.headers.get('cache-control')).toBe('no-store');
        const value = made.json.data[kind];
        expect(isWellFormedCredential(kind, value)).toBe(true);
        const list = JSON.stringify((await ask(`/tenants/${tenantId}/${path}`)).json);
        expect(list).toContain(made.json.data.id);
        expect(list).not.toContain(value);
        for (let time = 0; time < 2; time++) {
          expect((await ask(`/tenants/${tenantId}/${path}/${made.json.data.id}`, { method: 'DELETE' })).status).toBe(
            204,
          );
        }
        await expectRefusal(
          `/tenants/${newId('ten')}/${path}/${made.json.data.id}`,
          { method: 'DELETE' },
          404,
          'not_found',
        );
      }
    });

    it('have owner and tags, which change with profile and expiry, and are refused with the field’s code', async () => {
      const made = await ask(`/tenants/${tenantId}/keys`, { body: { name: 'k', owner: 'anna', tags: ['a', 'b:c'] } });
      expect(made.json.data).toMatchObject({ owner: 'anna', tags: ['a', 'b:c'], profile: 'default', expiresAt: null });
      const path = `/tenants/${tenantId}/keys/${made.json.data.id}`;
      const patch = (body: object) => ask(path, { method: 'PATCH', body });
      const { status, json } = await patch({ name: ' new ', owner: null, expiresAt: '2099-01-01' });
      expect(status).toBe(200);
      expect(json.data).toMatchObject({
        name: 'new',
        owner: null,
        tags: ['a', 'b:c'],
        expiresAt: '2099-01-01T00:00:00.000Z',
      });
      expect((await ask(`/tenants/${tenantId}/keys?limit=1`)).json.data).toEqual([json.data]);
      for (const [body, code] of [
        [{ owner: '' }, 'invalid_owner'],
        [{ owner: ' a' }, 'invalid_owner'],
        [{ owner: 'a\u202eb' }, 'invalid_owner'],
        [{ owner: 'x'.repeat(101) }, 'invalid_owner'],
        [{ tags: null }, 'invalid_tags'],
        [{ tags: ['a', 'a'] }, 'invalid_tags'],
        [{ tags: ['a b'] }, 'invalid_tags'],
        [{ tags: Array.from({ length: 17 }, (_, i) => `t${i}`) }, 'invalid_tags'],
        [{ name: ' ' }, 'name_required'],
        [{ profile: 'nothing' }, 'invalid_profile'],
        [{ expiresAt: '2001-01-01' }, 'invalid_expires_at'],
      ] as const)
        await expectRefusal(path, { method: 'PATCH', body }, 400, code);
      const others = `/tenants/${newId('ten')}/keys/${made.json.data.id}`;
      await expectRefusal(others, { method: 'PATCH', body: { name: 'x' } }, 404, 'not_found');
    });

    it('work at the management API with their scopes until they are revoked', async () => {
      const { json } = await ask(`/tenants/${tenantId}/tokens`, { body: { name: 't', scopes: ['billing:read'] } });
      const billing = () => send(`${services.publicUrl}/_api/v1/billing`, { token: json.data.token });
      expect(await inForceAfterMs(async () => expect((await billing()).status).toBe(200))).toBeLessThan(1_000);
      expect((await ask(`/tenants/${tenantId}/tokens/${json.data.id}`, { method: 'DELETE' })).status).toBe(204);
      const revoked = async () => expect((await billing()).json.error?.code).toBe('token_revoked');
      expect(await inForceAfterMs(revoked)).toBeLessThan(1_000);
    });

    it('are refused with the field’s code', async () => {
      const scopes = ['keys:read'];
      await expectRefusal(
        `/tenants/${tenantId}/keys`,
        { body: { name: 'k', profile: 'nothing' } },
        400,
        'invalid_profile',
      );
      await expectRefusal(
        `/tenants/${tenantId}/keys`,
        { body: { name: 'k', expiresAt: '2001-01-01' } },
        400,
        'invalid_expires_at',
      );
      for (const wrong of [undefined, [], ['all'], 'keys:read', ['keys:read', 'keys:read']]) {
        await expectRefusal(
          `/tenants/${tenantId}/tokens`,
          { body: { name: 't', scopes: wrong } },
          400,
          'invalid_scope',
        );
      }
      await expectRefusal(`/tenants/${tenantId}/tokens`, { body: { scopes } }, 400, 'name_required');
      await expectRefusal(
        `/tenants/${tenantId}/tokens`,
        { body: { name: 't', scopes, expiresAt: 'x' } },
        400,
        'invalid_expires_at',
      );
    });
  });

  it('reconcile runs and finds no difference', async () => {
    const { status, json } = await ask('/reconcile', { method: 'POST' });
    expect([status, json.data.ok, json.data.differences]).toEqual([200, true, []]);
  });

  it('the port answers 404 and 405 in its own envelope, each with a request id', async () => {
    await expectRefusal('', {}, 404, 'not_found');
    await expectRefusal('/tenants/%zz', {}, 404, 'not_found');
    const { headers } = await expectRefusal('/tenants', { method: 'PUT' }, 405, 'method_not_allowed');
    expect(headers.get('allow')).toBe('GET, HEAD, POST');
    expect(headers.get('x-request-id')).toMatch(/^req_/);
    expect((await ask('/tenants', { headers: { 'x-request-id': 'mine-1' } })).headers.get('x-request-id')).toBe(
      'mine-1',
    );
  });
}
