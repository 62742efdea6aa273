import type { ConsoleDataSource } from '../database';
import { ConsoleError } from '../http/errors';
import { type Mailer, MailError } from '../http/mailer';
import type { SignIn } from '../sign-in/sign-in';
import type { Changes } from './changes';
import { Recoveries } from './recoveries';

it('while a hundred mails wait, a request is refused with the time to wait', () => {
  const dataSource = { transaction: () => new Promise(() => undefined) };
  const recoveries = new Recoveries(
    dataSource as unknown as ConsoleDataSource,
    {} as SignIn,
    {} as Changes,
    { isConfigured: true } as Mailer,
  );
  for (let time = 0; time < 100; time++) recoveries.request('ada@example.com');
  let refused: unknown;
  try {
    recoveries.request('ada@example.com');
  } catch (error) {
    refused = error;
  }
  expect(refused).toBeInstanceOf(ConsoleError);
  expect(refused).toMatchObject({ code: 'rate_limited', headers: { 'retry-after': '5' } });
});

it.each([
  [true, []],
  [false, ['DELETE FROM recovery WHERE token_hash = $1']],
])('a link works on if its mail may have arrived: %s', async (mayHaveArrived, statements) => {
  const made: string[] = [];
  const query = (sql: string) => Promise.resolve(void made.push(sql));
  const dataSource = { transaction: () => Promise.resolve(true), query };
  const sendRecovery = () => Promise.reject(new MailError('Connection closed unexpectedly', mayHaveArrived));
  const recoveries = new Recoveries(
    dataSource as unknown as ConsoleDataSource,
    { origin: 'http://localhost' } as SignIn,
    {} as Changes,
    { isConfigured: true, sendRecovery } as unknown as Mailer,
  );
  recoveries.request('ada@example.com');
  await recoveries.beforeApplicationShutdown();
  expect(made).toEqual(statements);
});
