import type { ServiceClient } from '@tollgate/messaging/nest';
import type { ConfigSource } from '@tollgate/runtime';
import { ReconcileController } from './reconcile.controller';

const services = { request: (_subject: string, asked: unknown) => Promise.resolve(asked) } as unknown as ServiceClient;

// Metering reads UTC alone, whatever form of ISO 8601 and offset the operator wrote.
it.each([
  ['2026-11-01', '2026-11-01T00:00:00.000Z'],
  ['2026-W45', '2026-11-02T00:00:00.000Z'],
  ['2026-11-01T10:00', '2026-11-01T10:00:00.000Z'],
  ['20261101T100000Z', '2026-11-01T10:00:00.000Z'],
  ['2026-11-01T10:00:00 02:00', '2026-11-01T08:00:00.000Z'],
])('hours before %s are those before %s', async (before, utc) => {
  const controller = new ReconcileController(services, {} as ConfigSource);
  expect(await controller.backends({ before })).toEqual({ hours: 24, before: utc });
});
