import { RequestError, UnavailableError } from '@tollgate/contracts';
import type { ServiceClient } from '@tollgate/messaging/nest';
import { tenantNames } from './tenant-names';

/** An auth that answers as `answer` says, and what it was asked. */
function authThat(answer: (tenantId: string) => { name: string }) {
  const asked: string[] = [];
  const request = (subject: string, { tenantId }: { tenantId: string }) => {
    asked.push(`${subject} ${tenantId}`);
    return new Promise((resolve) => resolve(answer(tenantId)));
  };
  return { services: { request } as unknown as ServiceClient, asked };
}

it('each tenant of a page is asked for once, and one that auth does not know has no name', async () => {
  const { services, asked } = authThat((tenantId) => {
    if (tenantId === 'ten_2') throw new RequestError('not_found', 'There is no such tenant.');
    return { name: `name of ${tenantId}` };
  });
  expect(await tenantNames(services, ['ten_1', 'ten_2', 'ten_1', 'ten_3'])).toEqual(
    new Map([
      ['ten_1', 'name of ten_1'],
      ['ten_3', 'name of ten_3'],
    ]),
  );
  expect(asked).toEqual(['ten_1', 'ten_2', 'ten_3'].map((tenantId) => `auth.tenants.get ${tenantId}`));
});

it('while auth is away, the list goes without names', async () => {
  const { services } = authThat(() => {
    throw new UnavailableError('nobody answers');
  });
  expect(await tenantNames(services, ['ten_1'])).toEqual(new Map());
});

it('another error is not swallowed', async () => {
  const { services } = authThat(() => {
    throw new RequestError('invalid_parameter', 'no');
  });
  await expect(tenantNames(services, ['ten_1'])).rejects.toMatchObject({ code: 'invalid_parameter' });
});
