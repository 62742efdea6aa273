import type { ServiceClient } from '@tollgate/messaging/nest';
import type { ConfigSource } from '@tollgate/runtime';
import Fastify, { type FastifyReply } from 'fastify';
import { AuditController } from './access/audit.controller';
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
  // All pages are those of the GET: while it read them, the HEAD could have read its own.
  expect(asked).toEqual(['0', '0', '1', '2', '3', '4']);
  expect([head.statusCode, head.body, head.headers['content-type']]).toEqual([200, '', get.headers['content-type']]);
  expect(head.headers['content-length']).toBeUndefined();
  expect(get.body).toMatch(/^(from|id),/);
  await server.close();
});
