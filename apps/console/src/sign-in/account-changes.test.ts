import { UnavailableError } from '@tollgate/contracts';
import type { Changes } from '../access/changes';
import { ConsoleError } from '../http/errors';
import { AccountCall, accountCall, accountHooks } from './account-changes';

const FROM = { address: '127.0.0.1', requestId: 'req' };
const ADA = { userId: 'ada', email: 'ada@example.com' };
const hooks = accountHooks(() => ADA.email);

function callOf(
  person: typeof ADA | null,
  log: string[] | Error,
  beforePassword: (userId: string) => Promise<void> = () => Promise.resolve(),
): AccountCall {
  const record = (_by: unknown, { action }: { action: string }) => {
    if (log instanceof Error) return Promise.reject(log);
    log.push(action);
    return Promise.resolve();
  };
  return new AccountCall({ record } as unknown as Changes, FROM, person, beforePassword);
}

it('a change without its row is not made, and the call knows why', async () => {
  const away = new UnavailableError('auth does not answer');
  const call = callOf(ADA, away);
  await accountCall.run(call, async () => {
    await expect(hooks.account.update.before({ password: 'hash' })).rejects.toBe(away);
    await expect(hooks.user.update.before({ twoFactorEnabled: false })).rejects.toBe(away);
    await expect(hooks.user.create.before({ email: ADA.email })).rejects.toBe(away);
  });
  expect(call.failure).toBe(away);
});

it('a change of the password waits for what comes before it, and is not made without', async () => {
  const ended: string[] = [];
  const call = callOf(ADA, [], (userId) => Promise.resolve(void ended.push(userId)));
  await accountCall.run(call, () => hooks.account.update.before({ password: 'hash' }));
  expect([call.failure, ended]).toEqual([undefined, ['ada']]);
  const overtaken = new ConsoleError('invalid_credentials');
  const late = callOf(ADA, [], () => Promise.reject(overtaken));
  await accountCall.run(late, () => expect(hooks.account.update.before({ password: 'hash' })).rejects.toBe(overtaken));
  expect(late.failure).toBe(overtaken);
});

it('nobody changes an account without being signed in', async () => {
  const log: string[] = [];
  const call = callOf(null, log);
  await accountCall.run(call, async () => {
    await expect(hooks.user.update.before({ twoFactorEnabled: true })).rejects.toThrow('nobody is signed in');
  });
  expect([call.failure, log]).toEqual([expect.any(Error), []]);
});

it('outside of a call, no account is changed', async () => {
  for (const change of [
    () => hooks.user.create.before({ email: ADA.email }),
    () => hooks.user.update.before({ twoFactorEnabled: false }),
    () => hooks.account.create.before({ userId: 'ada' }),
    () => hooks.account.update.before({ password: 'hash' }),
  ])
    await expect(change()).rejects.toThrow('outside of a call');
  await hooks.account.update.before({ accessToken: 'next' });
});

it('tokens and names that the library writes at a sign-in are no change', async () => {
  const log: string[] = [];
  await accountCall.run(callOf(ADA, log), async () => {
    await hooks.account.update.before({ accessToken: 'next' });
    await hooks.user.update.before({ name: 'Ada' });
  });
  expect(log).toEqual([]);
});

it('the row of a new account has its provider, and a later provider has a row', async () => {
  const log: string[] = [];
  await accountCall.run(callOf(null, log), async () => {
    const made = await hooks.user.create.before({ email: ADA.email });
    await hooks.account.create.before({ userId: made.data.id });
  });
  await accountCall.run(callOf(null, log), () => hooks.account.create.before({ userId: 'ada' }));
  expect(log).toEqual(['account.create', 'account.link']);
});
