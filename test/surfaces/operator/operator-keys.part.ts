import { newId, type KeyRow } from '@tollgate/contracts';
import { eventually } from '@tollgate/testing';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { askOperator, send } from '../ask';
import type { Services } from '../services';
import { runTollgate, useDataDirectory } from '../tollgate-process';

export function operatorKeysTests(services: Services): void {
  const directory = useDataDirectory(services);
  const ask = askOperator(services);
  const tollgate = (...args: string[]) => runTollgate(args, { TOLLGATE_DATA_DIR: directory.path });
  async function answered(...args: string[]) {
    const { code, stdout, stderr } = await tollgate(...args, '--json');
    expect([args, code, code === 0 ? '' : stderr]).toEqual([args, 0, '']);
    return JSON.parse(stdout);
  }
  const keysOf = async (tenantId: string): Promise<KeyRow[]> =>
    (await ask(`/tenants/${tenantId}/keys?limit=200`)).json.data;
  const models = (key: string) => send(`${services.publicUrl}/v1/models`, { token: key });
  function fileOf(content: unknown): string {
    const path = join(directory.path, `${newId('msg')}.yaml`);
    writeFileSync(path, typeof content === 'string' ? content : stringify(content));
    return path;
  }

  describe('tollgate key rotate', () => {
    it('creates the next secret of a key, and both work until former ones are ended', async () => {
      const { tenantId } = await services.tenant();
      const first = await answered('key', 'create', tenantId, 'prod');
      const second = await answered('key', 'rotate', tenantId, first.id, '--grace', '2');
      expect(second).toMatchObject({ id: first.id, last4: second.key.slice(-4), formerUntil: expect.any(String) });
      for (const { key } of [first, second]) expect((await models(key)).status).toBe(200);
      const third = await answered('key', 'rotate', tenantId, first.id, '--grace', '0');
      expect((await models(third.key)).status).toBe(200);
      await eventually(async () => {
        for (const { key } of [first, second]) expect((await models(key)).status).toBe(401);
      });
      expect((await tollgate('key', 'rotate', tenantId, first.id, '--grace', '721')).code).toBe(2);
    });

    it('does not find keys of another tenant', async () => {
      const { tenantId } = await services.tenant();
      const { id, key } = await answered('key', 'create', (await services.tenant()).tenantId, 'other');
      const { status, json } = await ask(`/tenants/${tenantId}/keys/${id}/rotate`, { body: {} });
      expect([status, json.error.code]).toEqual([404, 'not_found']);
      expect((await models(key)).status).toBe(200);
    });
  });

  it('a key reaches the models that it names and no others, within a second of a change', async () => {
    const { tenantId } = await services.tenant();
    const { id, key } = await answered('key', 'create', tenantId, 'one model', '--models', 'sim-small');
    const reached = async () => (await models(key)).json.data.map((row: { id: string }) => row.id);
    expect(await reached()).toEqual(['sim-small']);
    const chat = { model: 'sim-large', messages: [{ role: 'user', content: 'x' }] };
    const refused = await send(`${services.publicUrl}/v1/chat/completions`, { token: key, body: chat });
    expect([refused.status, refused.json.error.code]).toEqual([404, 'model_not_found']);
    expect((await tollgate('key', 'list', tenantId)).stdout).toMatch(/sim-small/);
    const unknown = await tollgate('key', 'update', tenantId, id, '--models', 'sim-small,nothing');
    expect([unknown.code, unknown.stderr]).toEqual([
      2,
      expect.stringMatching(/^tollgate: --models .*"nothing" is not one/),
    ]);
    expect((await tollgate('key', 'update', tenantId, id, '--models', 'x', '--all-models')).code).toBe(2);
    await answered('key', 'update', tenantId, id, '--all-models');
    await eventually(async () => expect((await reached()).length).toBeGreaterThan(1));
    const other = (await services.tenant()).tenantId;
    const foreign = await ask(`/tenants/${other}/keys/${id}`, { method: 'PATCH', body: { models: ['sim-small'] } });
    expect([foreign.status, foreign.json.error.code]).toEqual([404, 'not_found']);
  });

  describe('tollgate keys apply', () => {
    it('shows its plan, creates 230 keys that work, and does nothing when it is repeated', async () => {
      const { tenantId } = await services.tenant();
      const keys = Array.from({ length: 230 }, (_, i) => ({
        name: `gpu-${i}`,
        owner: `team-${i % 3}`,
        tags: ['fleet'],
      }));
      const file = fileOf({ tenant: tenantId, keys });
      const planned = await answered('keys', 'apply', file, '--dry-run');
      expect([planned.created.length, planned.unchanged, await keysOf(tenantId)]).toEqual([230, 0, []]);
      const unasked = await tollgate('keys', 'apply', file);
      expect([unasked.code, unasked.stderr]).toEqual([2, expect.stringMatching(/create +gpu-0 [^]*--yes/)]);

      const out = join(directory.path, 'new-keys.txt');
      const done = await tollgate('keys', 'apply', file, '--yes', '--out', out);
      expect([done.code, done.stdout]).toEqual([0, expect.stringMatching(/^Created 230, changed 0, revoked 0\./)]);
      expect(done.stdout + done.stderr).not.toContain('sk-svc-');
      expect(statSync(out).mode & 0o777).toBe(0o600);
      const lines = readFileSync(out, 'utf8').trim().split('\n');
      expect(lines).toHaveLength(230);
      const [id, key, name] = lines[117]!.split(' ');
      expect([name, (await models(key!)).status]).toEqual(['gpu-117', 200]);
      expect(await ask(`/tenants/${tenantId}/keys?limit=1`)).toMatchObject({ status: 200 });
      const repeated = await answered('keys', 'apply', file);
      expect(repeated).toMatchObject({ created: [], updated: [], unchanged: 230, dryRun: true });
      const nothing = await tollgate('keys', 'apply', file);
      expect([nothing.code, nothing.stdout]).toEqual([0, 'Nothing to do: 230 keys as wanted.\n']);

      const fewer = fileOf({ tenant: tenantId, keys: [{ name: 'gpu-117', tags: ['prod'] }] });
      const kept = await tollgate('keys', 'apply', fewer, '--dry-run');
      expect(kept.stdout).toContain('as wanted: 0. Not in the file, and kept: 229 (--revoke-others revokes them).\n');
      const shown = (await tollgate('keys', 'apply', fewer, '--dry-run', '--revoke-others')).stdout;
      expect(shown).toMatch(/\nchange +gpu-117 +tags: fleet → prod\n/);
      expect(shown).toMatch(/\nTo create: 0, to change: 1, to revoke: 229, as wanted: 0\.\nNothing was changed\.\n$/);
      const pruned = await answered('keys', 'apply', fewer, '--yes', '--revoke-others');
      expect(pruned).toMatchObject({
        created: [],
        updated: [{ id, fields: ['tags'], before: { tags: ['fleet'] } }],
        inForce: true,
      });
      expect(pruned.revoked).toHaveLength(229);
      expect((await models(key!)).status).toBe(200);
      const [, other] = lines[0]!.split(' ');
      await eventually(async () => expect((await models(other!)).status).toBe(401));
    });

    it('counts the keys that the file does not name over all its calls', async () => {
      const { tenantId } = await services.tenant();
      const tags = Array.from({ length: 16 }, (_, i) => `${i}`.padEnd(64, '-'));
      const keys = Array.from({ length: 80 }, (_, i) => ({ name: `k${i}`, tags }));
      await answered('keys', 'apply', fileOf({ tenant: tenantId, keys: [{ name: 'other' }, keys.at(-1)] }), '--yes');
      const planned = await answered('keys', 'apply', fileOf({ tenant: tenantId, keys }), '--dry-run');
      expect([planned.created.length, planned.unchanged, planned.others]).toEqual([79, 1, 1]);
    });

    it('does not write over a file, nor create keys whose secrets it could not write', async () => {
      const { tenantId } = await services.tenant();
      const file = fileOf({ keys: [{ name: 'a' }] });
      const kept = fileOf('kept');
      const refused = await tollgate('keys', 'apply', file, '--tenant', tenantId, '--yes', '--out', kept);
      expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('Name a new file')]);
      expect([readFileSync(kept, 'utf8'), await keysOf(tenantId)]).toEqual(['kept', []]);
    });

    it('names what is wrong in a file, and changes nothing', async () => {
      const { tenantId: tenant } = await services.tenant();
      const wrong: [unknown, RegExp][] = [
        ['{', /is not YAML: /],
        ['[]', /must have the fields tenant and keys/],
        [{ tenant, keys: [] }, /keys must be a list/],
        [{ tenant, keys: [{ nam: 'a' }] }, /:\d+: keys\.0 must be a key with a name/],
        [
          { tenant, keys: [{ name: 'a' }, { name: 'b' }, { name: 'a' }] },
          /:5: the key in line 3 has the same name, a\./,
        ],
        [{ tenant, key: [{ name: 'a' }] }, /key is not a field/],
        [{ keys: [{ name: 'a' }] }, /names no tenant/],
        [
          { tenant, keys: [{ name: 'a', profil: 'x' }] },
          /:4: key a, field profil: it is not a field of a key\. A key has: name, /,
        ],
        [{ tenant, keys: [{ name: 'a' }, { name: 'b', tags: 'x' }] }, /:\d+: key b, field tags: tags must be a list/],
        [{ tenant, keys: [{ name: 'a', expiresAt: '2020-01-01' }] }, /:4: key a, field expiresAt: expiresAt must be/],
        [
          { tenant, keys: [{ name: 'a' }, { name: 'b', profile: 'gold' }] },
          /:5: key b, field profile: profile must name/,
        ],
        [
          `tenant: ${tenant}\nkeys:\n  - name: a\n  - name: b\n    owner: x\n    models: [nothing]\n`,
          /:6: key b, field models: .*"nothing" is not one/,
        ],
        [{ tenant: newId('ten'), keys: [{ name: 'a' }] }, /No tenant has the id/],
      ];
      for (const [content, message] of wrong) {
        const { code, stderr } = await tollgate('keys', 'apply', fileOf(content), '--yes');
        expect([code, stderr]).toEqual([1, expect.stringMatching(message)]);
      }
      expect((await tollgate('keys', 'apply', 'no-such-file.yaml')).stderr).toBe(
        'tollgate: no-such-file.yaml cannot be read: there is no such file or directory.\n',
      );
      expect(await keysOf(tenant)).toEqual([]);
    });
  });
}
