import { hashCredential, isWellFormedCredential, newId } from '@tollgate/contracts';
import { eventually } from '@tollgate/testing';
import { ISO, managementApi } from '../ask';
import type { Services } from '../services';

/** Keys of the management API. */
export function managementKeysTests(services: Services): void {
  let acme: { tenantId: string; token: string; tokenId: string };
  beforeAll(async () => {
    acme = await services.tenant();
  });
  const { ask, expectRefusal } = managementApi(services, () => acme.token);

  describe('POST /keys', () => {
    it('issues a key that is shown once, with 201, exactly the documented fields, and no caching', async () => {
      const { status, json, headers } = await ask('/keys', {
        body: { name: '  backend ', profile: 'default' },
      });
      expect(status).toBe(201);
      expect(json).toEqual({
        data: {
          id: expect.stringMatching(/^key_/),
          name: 'backend',
          key: expect.any(String),
          last4: json.data.key.slice(-4),
        },
        note: expect.any(String),
      });
      expect(isWellFormedCredential('key', json.data.key)).toBe(true);
      expect(headers.get('cache-control')).toBe('no-store');
      const record = await eventually(async () => {
        const found = await services.credentials.lookup(hashCredential(json.data.key));
        expect(found).not.toBeNull();
        return found!;
      });
      expect(record).toMatchObject({ kind: 'key', id: json.data.id, tenantId: acme.tenantId, profile: 'default' });
    });

    it('accepts an expiry in the future, in UTC if it has no offset', async () => {
      const cases: [string | null, string | null][] = [
        ['2099-01-01', '2099-01-01T00:00:00.000Z'],
        ['2099-01-01T12:00:00', '2099-01-01T12:00:00.000Z'],
        ['2099-01-01T12:00:00.5+02:00', '2099-01-01T10:00:00.500Z'],
        [null, null],
      ];
      for (const [expiresAt, expected] of cases) {
        const { status, json } = await ask('/keys', { body: { name: 'k', expiresAt } });
        expect(status).toBe(201);
        const { json: list } = await ask('/keys?limit=1');
        expect(list.data[0]).toMatchObject({ id: json.data.id, expiresAt: expected });
      }
    });

    it.each([[{}], [{ name: '' }], [{ name: ' \t ' }], [{ profile: 'default' }]])(
      'answers 400 name_required to %j',
      (body) => expectRefusal('/keys', { body }, 400, 'name_required'),
    );
    it('answers 400 name_required without a body', () =>
      expectRefusal('/keys', { method: 'POST' }, 400, 'name_required'));

    it.each(
      [
        1,
        null,
        [],
        {},
        true,
        'x'.repeat(101),
        'a\u0000b',
        'a\nb',
        '\ud800',
        'a\u202eb',
        'a\u2028b',
        '\u200b\u2060',
      ].map((name) => [name]),
    )('answers 400 invalid_name to %j', (name) => expectRefusal('/keys', { body: { name } }, 400, 'invalid_name'));
    it('counts the characters of a name after trimming', async () => {
      expect((await ask('/keys', { body: { name: ` ${'😀'.repeat(100)} ` } })).status).toBe(201);
      await expectRefusal('/keys', { body: { name: '😀'.repeat(101) } }, 400, 'invalid_name');
    });

    it.each([1, [], '', 'no such profile', 'nobody'].map((profile) => [profile]))(
      'answers 400 invalid_profile to %j',
      (profile) => expectRefusal('/keys', { body: { name: 'k', profile } }, 400, 'invalid_profile'),
    );

    it('answers 400 invalid_models to a model that does not exist, and names it', async () => {
      const asked = { body: { name: 'k', models: ['sim-small', 'nothing'] } };
      const { json } = await expectRefusal('/keys', asked, 400, 'invalid_models');
      expect(json.error.message).toBe('models must be ids of models that exist; "nothing" is not one.');
    });

    const wrongTimes = [
      1,
      '',
      'tomorrow',
      '2020-01-01T00:00:00Z',
      '2099-02-30',
      '2099-13-01',
      '2099-01-01T25:00:00Z',
      '99999-01-01',
    ];
    it.each(wrongTimes.map((time) => [time]))('answers 400 invalid_expires_at to %j', (expiresAt) =>
      expectRefusal('/keys', { body: { name: 'k', expiresAt } }, 400, 'invalid_expires_at'),
    );

    const malformed = ['{', '[]', 'null', '"x"', '1', '{"name":"k",}', Buffer.from([0x7b, 0xff, 0x7d])];
    it.each(malformed.map((text) => [text]))('answers 400 invalid_json to %j', (text) =>
      expectRefusal('/keys', { text }, 400, 'invalid_json'),
    );

    it.each<[text: string | Buffer, message: string]>([
      ['{', 'The body is not valid JSON.'],
      ['[]', 'The body is not a JSON object.'],
      [Buffer.from([0x7b, 0xff, 0x7d]), 'The body is not valid UTF-8.'],
    ])('says what is wrong with the body %j', async (text, message) => {
      expect((await ask('/keys', { text })).json.error).toEqual({ code: 'invalid_json', message });
    });

    it('answers 415 to another content type, and to a compressed body', async () => {
      for (const headers of [
        { 'content-type': 'text/plain' },
        { 'content-type': '' },
        { 'content-encoding': 'gzip' },
      ]) {
        await expectRefusal('/keys', { body: { name: 'k' }, headers }, 415, 'unsupported_media_type');
      }
      const headers = { 'content-type': 'Application/JSON; charset=utf-8' };
      expect((await ask('/keys', { body: { name: 'k' }, headers })).status).toBe(201);
    });

    it('answers 413 to a body over 64 KiB', () =>
      expectRefusal('/keys', { body: { name: 'k', pad: 'x'.repeat(65_536) } }, 413, 'payload_too_large'));
  });

  describe('GET /keys', () => {
    it('lists exactly the documented fields, newest first, page by page, and only the tenant’s own', async () => {
      const { token } = await services.tenant();
      await ask('/keys', { body: { name: 'of somebody else' } });
      const issued: string[] = [];
      for (const name of ['a', 'b', 'c']) issued.unshift((await ask('/keys', { token, body: { name } })).json.data.id);
      const first = await ask('/keys?limit=2', { token });
      expect(first.json).toEqual({
        data: [
          {
            id: issued[0],
            name: 'c',
            last4: expect.any(String),
            status: 'active',
            createdAt: expect.stringMatching(ISO),
            expiresAt: null,
          },
          expect.objectContaining({ id: issued[1] }),
        ],
        nextCursor: issued[1],
      });
      const second = await ask(`/keys?limit=2&after=${first.json.nextCursor}`, { token });
      expect(second.json).toEqual({ data: [expect.objectContaining({ id: issued[2] })], nextCursor: null });
    });

    it.each([
      'limit=0',
      'limit=201',
      'limit=x',
      'limit=1.5',
      'limit=',
      'limit=1&limit=2',
      'after=x',
      'after=',
      `after=${newId('tok')}`,
      `after=${newId('key')}`,
      'after=%00',
    ])('answers 400 invalid_parameter to ?%s', (query) =>
      expectRefusal(`/keys?${query}`, {}, 400, 'invalid_parameter'),
    );
  });

  describe('DELETE /keys/{id}', () => {
    it('revokes a key with 204, answers a repeat with 204, and the list shows it', async () => {
      const { json } = await ask('/keys', { body: { name: 'short-lived' } });
      for (let time = 0; time < 2; time++) {
        const answer = await ask(`/keys/${json.data.id}`, { method: 'DELETE' });
        expect([answer.status, answer.json]).toEqual([204, null]);
      }
      const { json: list } = await ask('/keys?limit=1');
      expect(list.data[0]).toMatchObject({ id: json.data.id, status: 'revoked' });
    });

    it('answers 404 not_found to an unknown or malformed id, and to a key of another tenant', async () => {
      const other = await services.tenant();
      const { json } = await ask('/keys', { token: other.token, body: { name: 'not yours' } });
      for (const id of [newId('key'), 'x', '%00', acme.tokenId, json.data.id]) {
        await expectRefusal(`/keys/${id}`, { method: 'DELETE' }, 404, 'not_found');
      }
      expect((await ask('/keys', { token: other.token })).json.data[0].status).toBe('active');
    });
  });
}
