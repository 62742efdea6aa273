import { RequestError, UnavailableError } from '@tollgate/contracts';
import type { ServiceClient } from '@tollgate/messaging/nest';
import { tenantNames } from './tenant-names';

/** An auth that answers as `answer` says, and what it was asked. */
function authThat(answer: (ids: string[]) => { id: string; name: string }[]) {
  const asked: unknown[] = [];
  const request = async (subject: string, { ids }: { ids: string[] }) => {
    asked.push([subject, ids]);
    return { data: answer(ids) };
  };
  return { services: { request } as unknown as ServiceClient, asked };
}

it('all tenants of a page are asked for at once, and one that auth does not know has no name', async () => {
  const { services, asked } = authThat((ids) =>
    ids.filter((id) => id !== 'ten_2').map((id) => ({ id, name: `name of ${id}` })),
  );
  expect(await tenantNames(services, ['ten_1', 'ten_2', 'ten_1', 'ten_3'])).toEqual(
    new Map([
      ['ten_1', 'name of ten_1'],
      ['ten_3', 'name of ten_3'],
    ]),
  );
  expect(asked).toEqual([['auth.tenants.names', ['ten_1', 'ten_2', 'ten_3']]]);
});

it('an empty page asks nobody', async () => {
  const { services, asked } = authThat(() => []);
  expect(await tenantNames(services, [])).toEqual(new Map());
  expect(asked).toEqual([]);
});

it('while auth is down, the list has no names', async () => {
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
