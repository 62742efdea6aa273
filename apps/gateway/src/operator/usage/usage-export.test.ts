import { MAX_KEY_NAMES, newId, RequestError, type ExportedUsage, type KeyNames } from '@tollgate/contracts';
import type { ServiceClient } from '@tollgate/messaging/nest';
import type { ConfigSource } from '@tollgate/runtime';
import Fastify from 'fastify';
import type { TenantLookup } from '../tenant-lookup';
import { UsageExportController, wholeSteps } from './usage-export.controller';

const ms = (time: string) => Date.parse(time);
const from = ms('2026-10-01T10:30:00Z');

it.each([
  ['hour', '2026-10-02T10:30:00Z', '2026-10-02T11:00:00.000Z'],
  ['day', '2026-10-02T10:30:00Z', '2026-10-03T00:00:00.000Z'],
  ['request', '9999-12-31T23:59:59.999Z', '9999-12-31T23:59:59.999Z'],
  ['hour', '9999-12-31T23:59:59.999Z', '9999-12-31T23:00:00.000Z'],
  ['day', '9999-12-31T00:00:00.001Z', '9999-12-31T00:00:00.000Z'],
] as const)('by the %s, an export until %s ends at %s', (step, to, end) => {
  expect(new Date(wholeSteps([from, ms(to)], step)[1]).toISOString()).toBe(end);
});

it('an export has the names of all keys of a day, however many they are', async () => {
  const keyIds = Array.from({ length: 2 * MAX_KEY_NAMES + 1 }, () => newId('key'));
  const hour = { from: '2026-10-02T10:00:00.000Z', to: '2026-10-02T11:00:00.000Z', tenantId: newId('ten') };
  const pageOf = (page: number) => {
    const [first, next] = [page * MAX_KEY_NAMES, (page + 1) * MAX_KEY_NAMES];
    const data = keyIds.slice(first, next).map((keyId) => ({ ...hour, keyId, costNanos: '1' }) as ExportedUsage);
    return { data, nextCursor: next < keyIds.length ? String(page + 1) : null };
  };
  const services = {
    request: async (subject: string, { after = '0', ids = [] }: { after?: string; ids?: string[] }) => {
      if (subject === 'metering.usage.export') return pageOf(Number(after));
      if (ids.length > MAX_KEY_NAMES) throw new RequestError('invalid_parameter', 'too many ids');
      return { data: ids.map((id) => ({ id, name: `name of ${id}`, tags: [] as string[] }) as KeyNames) };
    },
  } as unknown as ServiceClient;
  const config = { current: { currency: 'USD' } } as ConfigSource;
  const controller = new UsageExportController(services, {} as TenantLookup, config);
  const server = Fastify();
  server.get('/', ({ query }, reply) => controller.export(query, reply));
  const { body } = await server.inject({ url: '/', query: { step: 'day', format: 'ndjson' } });
  const lines = body.split('\n').slice(0, -1);
  expect(lines).toHaveLength(keyIds.length);
  for (const [index, keyId] of keyIds.entries())
    expect(JSON.parse(lines[index]!)).toMatchObject({ keyId, keyName: `name of ${keyId}` });
  await server.close();
});
