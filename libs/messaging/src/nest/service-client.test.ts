import { RequestError, type ReplyOf } from '@tollgate/contracts';
import { firstValueFrom } from 'rxjs';
import { InProcessRequests } from '../in-process-requests';
import type { Messages } from '../messages';
import { ServiceClient } from './service-client';

// The conformance suites cover `request` and `emit`. This file covers `send`, which Nest's own clients have as well.
describe("ServiceClient used like Nest's own clients", () => {
  const requests = new InProcessRequests();
  const client = new ServiceClient(requests as unknown as Messages);
  requests.handle('auth.tenants.get', async ({ tenantId: id }) => ({ id }) as ReplyOf<'auth.tenants.get'>);
  requests.handle('billing.credit.news', async () => null);
  requests.handle('auth.tenants.list', async () => {
    throw new RequestError('invalid_parameter', 'limit');
  });

  it('emits the one reply, and completes', async () => {
    expect(await firstValueFrom(client.send('auth.tenants.get', { tenantId: 'ten_1' }))).toEqual({ id: 'ten_1' });
    expect(await firstValueFrom(client.send('billing.credit.news', { tenantId: 'ten_1' }))).toBeNull();
  });

  it('fails with the RequestError of the handler', async () => {
    const refusal = await firstValueFrom(client.send('auth.tenants.list', {})).catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(RequestError);
    expect(refusal).toMatchObject({ code: 'invalid_parameter', message: 'limit' });
  });
});
