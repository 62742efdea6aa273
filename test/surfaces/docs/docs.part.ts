import { SCOPES } from '@tollgate/contracts';
import { eventually } from '@tollgate/testing';
import { send } from '../ask';
import { Documented } from './documented';
import type { Services } from '../services';

/** The public documentation, compared with real answers. */
export function docsTests(services: Services): void {
  let documented: Documented;
  let token: string;
  let key: string;

  beforeAll(async () => {
    documented = await Documented.read(services.publicUrl, '/docs/api/openapi.yaml');
    const tenant = await services.tenant();
    token = tenant.token;
    await services.messages.request('billing.credit.add', {
      tenantId: tenant.tenantId,
      amountCents: 1_000,
      source: 'manual',
      ref: 'docs',
    });
    key = (await send(`${services.publicUrl}/_api/v1/keys`, { token, body: { name: 'docs' } })).json.data.key;
    await eventually(async () => {
      const answer = await ask('post', '/v1/chat/completions', { token: key, body: chat });
      expect(answer.status).toBe(200);
    });
  });

  const chat = { model: 'sim-small', messages: [{ role: 'user', content: 'Hello' }], max_tokens: 5 };

  const ask: Documented['ask'] = (...asked) => documented.ask(...asked);

  describe('real answers', () => {
    it('of the management API match its document', async () => {
      const keys = '/_api/v1/keys';
      const made = await ask('post', keys, { token, body: { name: 'x', expiresAt: '2099-01-01' } });
      await ask('delete', `${keys}/{id}`, { token }, { id: made.json.data.id });
      await ask('get', keys, { token }, { query: '?limit=1' });
      await ask('get', '/_api/v1/tokens', { token });
      await ask('get', '/_api/v1/billing', { token });
      const usage = await eventually(async () => {
        const answer = await ask('get', '/_api/v1/usage', { token }, { query: '?groupBy=model,key,day,hour' });
        expect(answer.json.data.groups).not.toEqual([]);
        return answer.json.data;
      });
      expect(Object.keys(usage.groups[0])).toEqual(
        expect.arrayContaining(['model', 'key', 'day', 'hour', 'costCents']),
      );
    });

    it('that refuse a call of the management API match its document', async () => {
      const keys = '/_api/v1/keys';
      const blind = await services.tenant(SCOPES.filter((scope) => scope !== 'keys:read'));
      expect((await ask('get', keys, { token: null })).status).toBe(401);
      expect((await ask('get', keys, { token: blind.token })).status).toBe(403);
      expect((await ask('get', keys, { token }, { query: '?limit=x' })).status).toBe(400);
      expect((await ask('delete', `${keys}/{id}`, { token }, { id: 'x' })).status).toBe(404);
      expect((await ask('post', keys, { token, body: {} })).status).toBe(400);
      expect((await ask('post', keys, { token, text: 'x', headers: { 'content-type': 'text/plain' } })).status).toBe(
        415,
      );
      expect((await ask('post', keys, { token, text: 'x'.repeat(65_537) })).status).toBe(413);
    });

    it('of the inference API match its document', async () => {
      for (const n of [1, 2]) await ask('post', '/v1/chat/completions', { token: key, body: { ...chat, n } });
      await ask('post', '/v1/completions', { token: key, body: { model: 'sim-small', prompt: 'Once' } });
      for (const encoding_format of ['float', 'base64']) {
        await ask('post', '/v1/embeddings', {
          token: key,
          body: { model: 'sim-embed', input: ['a', 'b'], encoding_format },
        });
      }
      await ask('get', '/v1/models', { token: key });
    });

    it('that refuse a call of the inference API match its document', async () => {
      expect((await ask('get', '/v1/models', { token: null })).status).toBe(401);
      expect((await ask('post', '/v1/chat/completions', { token: key, text: '{' })).status).toBe(400);
      expect((await ask('post', '/v1/embeddings', { token: key, body: { model: 'none', input: 'a' } })).status).toBe(
        404,
      );
      const poor = await services.tenant();
      const made = await send(`${services.publicUrl}/_api/v1/keys`, { token: poor.token, body: { name: 'poor' } });
      expect((await ask('post', '/v1/chat/completions', { token: made.json.data.key, body: chat })).status).toBe(402);
    });

    it.each([
      ['/v1/chat/completions', { ...chat, stream: true }],
      ['/v1/chat/completions', { ...chat, stream: true, stream_options: { include_usage: true } }],
      ['/v1/completions', { model: 'sim-small', prompt: 'Once', stream: true }],
    ])('of a stream match the document: %s', async (path, body) => {
      const response = await fetch(services.publicUrl + path, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
      expect(response.headers.get('content-type')).toContain('text/event-stream');
      const validate = documented.schemaOf(
        documented.paths[path]!['post']!.responses['200']!.content!['text/event-stream']!.schema.properties!.data
          .anyOf[1].contentSchema.$ref,
      );
      const events = (await response.text()).split('\n\n').filter((event) => event !== '');
      expect(events.pop()).toBe('data: [DONE]');
      expect(events.length).toBeGreaterThan(1);
      for (const event of events) {
        validate(JSON.parse(event.replace(/^data: /, '')));
        expect([event, validate.errors]).toEqual([event, null]);
      }
    });
  });

  describe('the documentation page', () => {
    it.each(['/docs', '/docs/', '/docs/api/openapi.yaml', '/docs/ui/page.js'])(
      'allows no other method at %s',
      async (path) => {
        for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS']) {
          const answer = await fetch(services.publicUrl + path, { method, redirect: 'manual' });
          expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
          expect(await answer.json()).toMatchObject({ error: { code: 'method_not_allowed' } });
        }
        expect((await fetch(services.publicUrl + path, { method: 'HEAD', redirect: 'manual' })).status).toBeLessThan(
          400,
        );
      },
    );

    it('loads everything from this server and has no inline script', async () => {
      const response = await fetch(`${services.publicUrl}/docs`);
      const html = await response.text();
      expect(response.headers.get('content-security-policy')).toContain("script-src 'self'");
      expect(html).not.toMatch(/<script>|<style|\son\w+=|https?:/);
      const links = [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, link]) => link!);
      expect(links).toHaveLength(5);
      for (const link of links) {
        const asset = await fetch(new URL(link, response.url));
        expect([link, asset.status]).toEqual([link, 200]);
        await asset.arrayBuffer();
      }
    });

    it('serves no other file of its folders', async () => {
      for (const name of ['package.json', 'index.html', '..%2fpackage.json', 'swagger-ui.js', '']) {
        expect([name, (await fetch(`${services.publicUrl}/docs/ui/${name}`)).status]).toEqual([name, 404]);
      }
    });
  });
}
