import type { AuditQuery } from '@tollgate/contracts';
import { useAuth } from '../running-auth.fixture';

const { auth } = useAuth();

it('the rows of a range are those from its start and before its end', async () => {
  const tenantId = await auth.tenant();
  const list = async (range: Pick<AuditQuery, 'from' | 'to'>) =>
    (await auth.request('auth.audit.list', { tenantId, ...range })).data.map(({ action }) => action);
  const { at } = (await auth.request('auth.audit.list', { tenantId })).data[0]!;
  expect(await list({ from: at })).toEqual(['tenant.create']);
  expect(await list({ to: at })).toEqual([]);
  expect(await list({ from: '0001-01-01T00:00:00.000Z', to: '9999-12-31T23:59:59.999Z' })).toEqual(['tenant.create']);
});

it.each<AuditQuery>([
  { from: '2026-02-30T00:00:00.000Z' },
  { to: '2026-02-30T00:00:00.000Z' },
  { from: '0000-01-01T00:00:00.000Z' },
  { to: '+275760-09-13T00:00:00.000Z' },
  { from: 'now' },
  { limit: 201 },
  { after: 'aud_\0' },
  { tenantId: '\0' },
  { target: 'a\0b' },
  { author: '\0' },
  { requestId: ['a'] as never },
])('%j is refused with invalid_parameter', async (query) => {
  await expect(auth.request('auth.audit.list', query)).rejects.toMatchObject({ code: 'invalid_parameter' });
});
