import {
  hashInvitationSecret,
  isWellFormedCredential,
  mintCredential,
  newId,
  OPERATOR_SCOPES,
} from '@tollgate/contracts';
import { onceServed } from '@tollgate/testing';
import { routesOf } from '../../../apps/gateway/src/openapi/route-table';
import { OPERATOR_ROUTES } from '../../../apps/gateway/src/operator/routes';
import { type Asked, askOperator, send } from '../ask';
import { CONSOLE_ORIGIN, type Services } from '../services';

export function operatorTokensTests(services: Services): void {
  const ask = askOperator(services);
  const code = async (path: string, asked: Asked) => {
    const { status, json } = await ask(path, asked);
    return [status, json?.error?.code];
  };

  let number = 0;
  async function issue(scopes: readonly string[], more: object = {}) {
    const body = () => ({ name: `t${++number}`, scopes, ...more });
    const answer = await onceServed(() => ask('/operator-tokens', { body: body() }));
    expect(answer.status).toBe(201);
    return answer.json.data as { id: string; token: string; name: string };
  }

  describe('an invitation of an operator', () => {
    it('is a link for ten minutes, of whose secret only the hash is stored', async () => {
      const { tenantId } = await services.tenant();
      const { status, json } = await ask('/operator-invitations', { body: { tenantId } });
      const { id, link, expiresAt } = json.data as { id: string; link: string; expiresAt: string };
      const [url, secret = ''] = link.split('#');
      expect([status, url]).toEqual([201, `${CONSOLE_ORIGIN}/console/invitation`]);
      expect(secret).toMatch(/^[\w-]{43}$/);
      expect(Math.abs(Date.parse(expiresAt) - Date.now() - 10 * 60_000)).toBeLessThan(60_000);
      const [row] = await services.database.query('SELECT * FROM console.invitation WHERE id = $1', [id]);
      expect(row).toMatchObject({
        token_hash: hashInvitationSecret(secret),
        operator: true,
        role: 'owner',
        email: null,
      });
      expect(row).toMatchObject({ tenant_id: tenantId, used_at: null, invited_by: null });
      expect(JSON.stringify(row)).not.toContain(secret);
      const [logged] = (await ask('/audit?action=operator.invite&limit=1')).json.data;
      expect(logged).toMatchObject({ target: id, tenantId, by: { kind: 'secret' } });
      expect(JSON.stringify(logged)).not.toContain(secret);
    });

    it('is refused for a tenant that does not exist, and as the first one where there is an operator', async () => {
      expect(await code('/operator-invitations', { body: { tenantId: newId('ten') } })).toEqual([404, 'not_found']);
      expect(await code('/operator-invitations', { body: { tenantId: 'acme' } })).toEqual([404, 'not_found']);
      expect((await ask('/operator-invitations', { body: { onlyFirst: true } })).status).toBe(201);
      await services.database.query(
        `INSERT INTO console."user" ("id", "name", "email", "emailVerified") VALUES ('u', 'U', 'u@example.com', false)`,
      );
      await services.database.query(`INSERT INTO console.operator (user_id) VALUES ('u')`);
      const again = { body: { onlyFirst: true } };
      expect(await code('/operator-invitations', again)).toEqual([409, 'operator_exists']);
      expect((await ask('/operator-invitations', { body: {} })).status).toBe(201);
    });
  });

  describe('a link for a new password', () => {
    it('works for an hour, and only the hash of its secret is stored', async () => {
      const user = `INSERT INTO console."user" ("id", "name", "email", "emailVerified") VALUES ($1, $1, $2, false)`;
      for (const id of ['forgot', 'sso']) await services.database.query(user, [id, `${id}@example.com`]);
      await services.database.query(
        `INSERT INTO console."account" ("id", "accountId", "providerId", "userId", "password", "updatedAt")
         VALUES ('forgot', 'forgot', 'credential', 'forgot', 'x', now())`,
      );
      const { status, json } = await ask('/password-links', { body: { email: 'Forgot@example.com' } });
      const { link, expiresAt } = json.data as { link: string; expiresAt: string };
      const [url, secret = ''] = link.split('#');
      expect([status, url]).toEqual([201, `${CONSOLE_ORIGIN}/console/reset-password`]);
      expect(Math.abs(Date.parse(expiresAt) - Date.now() - 60 * 60_000)).toBeLessThan(60_000);
      const rows = await services.database.query(`SELECT * FROM console.recovery WHERE user_id = 'forgot'`);
      expect(rows).toMatchObject([
        { token_hash: hashInvitationSecret(secret), made_by: 'operator-api', tenant_id: null },
      ]);
      const [logged] = (await ask('/audit?action=recovery.create&limit=1')).json.data;
      expect(logged).toMatchObject({ target: 'forgot', after: { name: 'forgot@example.com' }, by: { kind: 'secret' } });
      expect(JSON.stringify([rows, logged])).not.toContain(secret);
    });

    it('is refused for a stranger, for a person without a password, and to a token without all scopes', async () => {
      const create = (email: string, more: Asked = {}) => code('/password-links', { body: { email }, ...more });
      expect(await create('nobody@example.com')).toEqual([404, 'not_found']);
      expect(await code('/password-links', { body: {} })).toEqual([400, 'invalid_email']);
      expect(await create('sso@example.com')).toEqual([409, 'no_password']);
      const { token } = await issue(OPERATOR_SCOPES.filter((scope) => scope !== 'credit'));
      expect(await create('forgot@example.com', { token })).toEqual([403, 'insufficient_scope']);
    });
  });

  describe('an operator of the console', () => {
    const remove = (email: string, more: Asked = {}) => code('/console-operators/remove', { body: { email }, ...more });
    const operators = async () =>
      (await services.database.query('SELECT user_id FROM console.operator ORDER BY 1')).map((row) => row['user_id']);

    it('is removed with a row in the audit log, and the last one stays', async () => {
      for (const id of ['v', 'w']) {
        const person = `INSERT INTO console."user" ("id", "name", "email", "emailVerified") VALUES ($1, $1, $2, false)`;
        await services.database.query(person, [id, `${id}@example.com`]);
      }
      await services.database.query('DELETE FROM console.operator');
      await services.database.query(`INSERT INTO console.operator (user_id) VALUES ('v'), ('w')`);
      expect(await remove('nobody@example.com')).toEqual([404, 'not_found']);
      expect(await remove('no address')).toEqual([400, 'invalid_email']);
      const { token } = await issue(OPERATOR_SCOPES.filter((scope) => scope !== 'credit'));
      expect(await remove('w@example.com', { token })).toEqual([403, 'insufficient_scope']);
      // Each removes the other: one of them stays.
      const both = await Promise.all([remove('V@example.com'), remove('w@example.com')]);
      expect(both.map(([status]) => status).sort()).toEqual([204, 409]);
      expect(both.flat()).toContain('last_operator');
      const [left] = await operators();
      expect(await operators()).toHaveLength(1);
      const gone = left === 'v' ? 'w' : 'v';
      const rows = (await ask('/audit?action=operator.remove')).json.data;
      expect(rows).toMatchObject([{ target: gone, before: { name: `${gone}@example.com` }, by: { kind: 'secret' } }]);
      expect(await remove(`${gone}@example.com`)).toEqual([404, 'not_found']);
    });
  });

  describe('an operator token', () => {
    it('is shown once, listed without its value, and its last use advances', async () => {
      const { id, token, name } = await issue(['read']);
      expect(isWellFormedCredential('operator', token)).toBe(true);
      expect((await ask('/operator-tokens', { token })).status).toBe(200);
      const list = await ask('/operator-tokens?limit=1');
      expect(list.json.data).toEqual([
        expect.objectContaining({ id, name, scopes: ['read'], last4: token.slice(-4), lastUsedAt: expect.any(String) }),
      ]);
      expect(JSON.stringify(list.json)).not.toContain(token);
    });

    it('reaches the endpoints of its scopes and no others', async () => {
      const ids: Record<string, string> = { tenantId: newId('ten'), accountingNumber: '1', id: newId('key') };
      const only = new Map<string, string>();
      const allBut = new Map<string, string>();
      for (const scope of OPERATOR_SCOPES) {
        only.set(scope, (await issue([scope])).token);
        allBut.set(scope, (await issue(OPERATOR_SCOPES.filter((other) => other !== scope))).token);
      }
      for (const { path, method, operation } of routesOf(OPERATOR_ROUTES)) {
        if (operation === null) continue;
        const url = services.operatorUrl + path.replace(/\{(\w+)\}/g, (_, name: string) => ids[name] ?? newId('ent'));
        const body = method === 'get' ? {} : { body: { unknown: true } };
        const asked = { method: method.toUpperCase(), ...body };
        const refused = await send(url, { ...asked, token: allBut.get(operation.scope)! });
        expect([operation.id, refused.status, refused.json.error]).toEqual([
          operation.id,
          403,
          { code: 'insufficient_scope', message: expect.stringContaining(`scope ${operation.scope}.`) },
        ]);
        const passed = await send(url, { ...asked, token: only.get(operation.scope)! });
        expect([operation.id, [200, 400, 404].includes(passed.status)]).toEqual([operation.id, true]);
        if (method === 'get') expect([operation.id, operation.scope]).toEqual([operation.id, 'read']);
      }
    });

    it('is refused from the moment its revocation is answered, and a repeat succeeds', async () => {
      const { id, token } = await issue(['read']);
      expect((await ask('/tenants', { token })).status).toBe(200);
      for (let time = 0; time < 2; time++)
        expect((await ask(`/operator-tokens/${id}`, { method: 'DELETE' })).status).toBe(204);
      expect(await code('/tenants', { token })).toEqual([401, 'token_revoked']);
    });

    it('is refused when it has expired', async () => {
      const { id, token } = await issue(['read'], { expiresAt: '2099-01-01' });
      expect((await ask('/tenants', { token })).status).toBe(200);
      await services.database.query(`UPDATE auth.operator_token SET expires_at = now() WHERE id = $1`, [id]);
      expect(await code('/tenants', { token })).toEqual([401, 'token_expired']);
    });

    it('has a name that no other token in force has', async () => {
      const { id, name } = await issue(['read']);
      const again = { body: { name, scopes: ['read'] } };
      expect(await code('/operator-tokens', again)).toEqual([409, 'name_taken']);
      await ask(`/operator-tokens/${id}`, { method: 'DELETE' });
      expect((await ask('/operator-tokens', again)).status).toBe(201);
    });

    it('grants no scope that it does not have', async () => {
      const { token } = await issue(['operators', 'read']);
      const body = { name: 'more', scopes: ['read', 'credit'] };
      expect(await code('/operator-tokens', { token, body })).toEqual([403, 'insufficient_scope']);
      expect((await ask('/operator-tokens', { token, body: { ...body, scopes: ['read'] } })).status).toBe(201);
    });

    it('invites an operator of the console only with all scopes', async () => {
      const { token } = await issue(OPERATOR_SCOPES.filter((scope) => scope !== 'credit'));
      expect(await code('/operator-invitations', { token, body: {} })).toEqual([403, 'insufficient_scope']);
      const all = await issue(OPERATOR_SCOPES);
      expect((await ask('/operator-invitations', { token: all.token, body: {} })).status).toBe(201);
    });

    it('that was never issued is refused like a wrong secret, and never reaches another API', async () => {
      expect(await code('/tenants', { token: mintCredential('operator').value })).toEqual([401, 'invalid_secret']);
      const { token } = await issue(['read']);
      const managed = await send(`${services.publicUrl}/_api/v1/keys`, { token });
      expect(managed.json.error.code).toBe('invalid_token');
      const inferred = await send(`${services.publicUrl}/v1/models`, { token });
      expect([inferred.status, inferred.json.error.code]).toEqual([401, 'invalid_api_key']);
    });

    it('is refused with the code of the wrong field', async () => {
      for (const scopes of [undefined, [], ['all'], ['keys:read'], ['read', 'read']])
        expect(await code('/operator-tokens', { body: { name: 'x', scopes } })).toEqual([400, 'invalid_scope']);
      expect(await code('/operator-tokens', { body: { scopes: ['read'] } })).toEqual([400, 'name_required']);
      expect(await code(`/operator-tokens/${newId('opr')}`, { method: 'DELETE' })).toEqual([404, 'not_found']);
      expect(await code('/operator-tokens/x', { method: 'DELETE' })).toEqual([404, 'not_found']);
    });
  });

  it('the service cannot change the scopes of a token or its revocation', async () => {
    const { id } = await issue(['read']);
    await ask(`/operator-tokens/${id}`, { method: 'DELETE' });
    const undo = services.database.query('UPDATE auth.operator_token SET revoked_at = NULL WHERE id = $1', [id]);
    await expect(undo).rejects.toThrow(/stays revoked/);
  });
}
