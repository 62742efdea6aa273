import type { Author } from '@tollgate/contracts';
import type { ServiceClient } from '@tollgate/messaging/nest';
import type { Caller } from '../../access/allow';
import type { ApiAddresses } from '../api-addresses';
import { Playgrounds } from './playgrounds';

it.each([
  ['a member', false, ['ada@example.com']],
  ['an operator, whom no tenant knows', true, [undefined]],
])('the key of %s', async (_, isOperator, owners) => {
  const made: unknown[] = [];
  const request = (_subject: string, { owner }: { owner?: string }) => Promise.resolve(void made.push(owner));
  const nowhere = { calledInferenceUrl: 'http://127.0.0.1:1' } as ApiAddresses;
  const playgrounds = new Playgrounds({ request } as unknown as ServiceClient, nowhere);
  const caller = { sessionId: 's', email: 'ada@example.com', isOperator } as Caller;
  const trial = { model: 'm', kind: 'chat', prompt: 'Hello', maxTokens: 1 } as const;
  await expect(playgrounds.run({ tenantId: 't', caller, by: {} as Author }, trial)).rejects.toMatchObject({
    code: 'unavailable',
  });
  expect(made).toEqual(owners);
});
