import type { AdmissionStore } from '@tollgate/admission';
import { newId, UnavailableError } from '@tollgate/contracts';
import type { Messages } from '@tollgate/messaging';
import type { ServiceClient } from '@tollgate/messaging/nest';
import { type ConfigSource, Health } from '@tollgate/runtime';
import Fastify, { type FastifyReply } from 'fastify';
import { AuditController } from './access/audit.controller';
import { createOperatorApp } from './operator.app';
import type { TenantLookup } from './tenant-lookup';
import { UsageExportController } from './usage/usage-export.controller';

// Real: Fastify, which answers HEAD by the route of GET. Metering and auth have several pages, and billing none.
const PAGES = 5;
/** The cursors of the pages that were asked for. */
let asked: string[] = [];
const services = {
  request: (subject: string, { after = '0' }: { after?: string }) => {
    if (subject === 'billing.audit.list') return Promise.resolve({ data: [], nextCursor: null });
    asked.push(after);
    const id = String(Number(after) + 1);
    const data = subject === 'auth.audit.list' ? [{ id, by: {} }] : [];
    return Promise.resolve({ data, nextCursor: Number(id) < PAGES ? id : null });
  },
} as unknown as ServiceClient;
const config = { current: { currency: 'USD' } } as ConfigSource;
const usage = new UsageExportController(services, {} as TenantLookup, config);
const audit = new AuditController(services);

beforeEach(() => {
  asked = [];
});

it.each([
  ['usage', (reply: FastifyReply) => usage.export({}, reply)],
  ['usage by the day', (reply: FastifyReply) => usage.export({ step: 'day' }, reply)],
  ['the audit log', (reply: FastifyReply) => audit.export({}, reply)],
] as const)('a HEAD of the export of %s reads only its first page', async (_, answer) => {
  const server = Fastify();
  server.get('/', (_request, reply) => answer(reply));
  const head = await server.inject({ method: 'HEAD', url: '/' });
  const get = await server.inject({ method: 'GET', url: '/' });
  // The GET read all pages. Meanwhile the HEAD could have read its own.
  expect(asked).toEqual(['0', '0', '1', '2', '3', '4']);
  expect([head.statusCode, head.body, head.headers['content-type']]).toEqual([200, '', get.headers['content-type']]);
  expect(head.headers['content-length']).toBeUndefined();
  expect(get.body).toMatch(/^(from|id),/);
  await server.close();
});

describe('an export whose names cannot be read', () => {
  const SECRET = 'the-operators-secret-in-tests';
  const row = (keyId: string) => ({ from: '2026-10-01T10:00:00.000Z', to: '2026-10-01T11:00:00.000Z', keyId });
  /** Auth knows the first key, and is unavailable for all others. */
  const [known, unknown] = [newId('key'), newId('key')];
  let pages: Record<string, { data: unknown[]; nextCursor: string | null }>;
  const messages = {
    request: async (subject: string, { after = 'first', ids }: { after?: string; ids?: string[] }) => {
      if (subject === 'metering.usage.export') return pages[after];
      if (ids!.includes(unknown)) throw new UnavailableError('auth is stopped');
      return { data: [{ id: known, name: 'prod', tags: [] }] };
    },
  } as unknown as Messages;
  let url: string;
  let close: () => Promise<void>;
  beforeAll(async () => {
    const seams = { messages, config, admission: {} as AdmissionStore };
    const app = await createOperatorApp(seams, { secrets: [SECRET], health: new Health() });
    await app.listen(0, '127.0.0.1');
    url = `${await app.getUrl()}/_operator/v1/usage/export`;
    close = () => app.close();
  });
  afterAll(() => close());
  const ask = (format: string) => fetch(`${url}?format=${format}`, { headers: { authorization: `Bearer ${SECRET}` } });

  it.each(['csv', 'ndjson', 'focus'])(
    'is refused in the envelope as %s, if they are the first ones',
    async (format) => {
      pages = { first: { data: [row(unknown)], nextCursor: null } };
      const answer = await ask(format);
      expect([answer.status, answer.headers.get('content-type')]).toEqual([503, 'application/json; charset=utf-8']);
      expect(await answer.json()).toEqual({ error: { code: 'unavailable', message: expect.any(String) } });
    },
  );

  it('breaks off later', async () => {
    pages = { first: { data: [row(known)], nextCursor: '2' }, 2: { data: [row(unknown)], nextCursor: null } };
    const answer = await ask('csv');
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'text/csv; charset=utf-8']);
    await expect(answer.text()).rejects.toThrow('terminated');
  });
});
