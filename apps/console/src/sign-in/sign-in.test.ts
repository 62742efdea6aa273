import type { ConsoleDataSource } from '../database';
import type { ConsoleOptions } from '../options';
import { signInLibrary, type SignInLibrary } from './better-auth';
import { problemOfIssuer } from './issuer-problem';
import { SignIn } from './sign-in';

const HOUR_MS = 3_600_000;
const RETRY_MS = 30_000;

/** The library asks the issuer when it is made, and has no provider when the issuer does not answer. */
jest.mock('./better-auth', () => ({
  signInLibrary: jest.fn(() => ({ $context: Promise.resolve({ socialProviders: [] }) })),
}));

const mockWarn = jest.fn();
jest.mock('@tollgate/runtime', () => ({
  ...jest.requireActual<object>('@tollgate/runtime'),
  logger: () => ({ warn: mockWarn }),
}));
jest.mock('./issuer-problem', () => ({ problemOfIssuer: jest.fn(() => Promise.resolve('certificate has expired')) }));

const oidc = {
  ...{ issuer: 'https://issuer.example', clientId: 'tollgate', clientSecret: 'secret' },
  ...{ domains: ['example.com'], rolesClaim: 'groups', roles: [] },
};
const options: ConsoleOptions = { databaseUrl: '', secret: '', oidc, mail: null };
const made = jest.mocked(signInLibrary);
const timesAsked = () => made.mock.calls.filter(([{ asksIssuer }]) => asksIssuer).length;

afterEach(() => jest.restoreAllMocks());

describe('an issuer that did not answer', () => {
  it.each([
    ['back', -HOUR_MS],
    ['forward', HOUR_MS],
  ])('is asked again after 30 s, although the wall clock was set %s', async (_, byMs) => {
    made.mockClear();
    const signIn = new SignIn({} as ConsoleDataSource, options);
    await signIn.serveAt('http://localhost:8082');
    const [wallMs, ownMs] = [Date.now() + byMs, performance.now()];
    jest.spyOn(Date, 'now').mockReturnValue(wallMs);
    const clock = jest.spyOn(performance, 'now').mockReturnValue(ownMs);
    expect(await signIn.hasOidc()).toBe(false);
    expect(timesAsked()).toBe(1);
    clock.mockReturnValue(ownMs + RETRY_MS);
    expect(await signIn.hasOidc()).toBe(false);
    expect(timesAsked()).toBe(2);
  });
});

it('the warning says why an issuer did not answer, once for each outage', async () => {
  mockWarn.mockClear();
  const signIn = new SignIn({} as ConsoleDataSource, options);
  await signIn.serveAt('http://localhost:8082');
  expect(mockWarn.mock.calls).toEqual([
    [{ issuer: oidc.issuer, reason: 'certificate has expired' }, expect.stringContaining('TOLLGATE_OIDC_ISSUER')],
  ]);
  expect(problemOfIssuer).toHaveBeenCalledWith(oidc.issuer);
});

it('a database that does not answer when the issuer does leaves single sign-on out, until both answer', async () => {
  const signIn = new SignIn({} as ConsoleDataSource, options);
  await signIn.serveAt('http://localhost:8082');
  // Whole milliseconds, whose differences are exact.
  const later = Math.ceil(performance.now()) + RETRY_MS;
  const clock = jest.spyOn(performance, 'now').mockReturnValue(later);
  const library = (ids: string[]) => ({ $context: Promise.resolve({ socialProviders: ids.map((id) => ({ id })) }) });
  const away = { $context: Promise.reject(new Error('no connection')) };
  made.mockReturnValueOnce(away as unknown as SignInLibrary);
  expect(await signIn.hasOidc()).toBe(false);
  made.mockReturnValueOnce(library(['oidc']) as unknown as SignInLibrary);
  clock.mockReturnValue(later + RETRY_MS);
  expect(await signIn.hasOidc()).toBe(true);
});
