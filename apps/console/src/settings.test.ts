import { readSettings } from '@tollgate/runtime';
import { ConsoleSettings } from './settings';

const SINGLE_SIGN_ON = {
  TOLLGATE_OIDC_ISSUER: 'https://login.example.com',
  TOLLGATE_OIDC_CLIENT_ID: 'console',
  TOLLGATE_OIDC_CLIENT_SECRET: 'secret',
};

describe('single sign-on', () => {
  it('has all its settings or none, where an empty one counts as none', () => {
    expect(() => readSettings(SINGLE_SIGN_ON, [ConsoleSettings])).not.toThrow();
    expect(() => readSettings({ TOLLGATE_OIDC_CLIENT_SECRET: '' }, [ConsoleSettings])).not.toThrow();
  });

  it.each(Object.keys(SINGLE_SIGN_ON))('is refused without %s, which the message names', (missing) => {
    const env = { ...SINGLE_SIGN_ON, [missing]: undefined };
    expect(() => readSettings(env, [ConsoleSettings])).toThrow(new RegExp(`is set: set ${missing}, too$`));
  });
});

describe('the URL of the mail server', () => {
  const read = (url: string) => readSettings({ TOLLGATE_SMTP_URL: url }, [ConsoleSettings]).TOLLGATE_SMTP_URL;

  it.each(['smtp://mail:25', 'smtps://anna%40example.com:a%2Fb@mail.example.com', 'smtps://mail?tls.servername=mx'])(
    'may be %s',
    (url) => expect(read(url)).toBe(url),
  );

  it.each([
    'http://mail',
    'smtps://u:kept#it@mail',
    'smtps://u:kept/it@mail',
    'smtps://u:1/kept@mail',
    'smtp://u:1?kept@m',
  ])('is refused as %s, with the remedy and without the password', (url) => {
    expect(() => read(url)).toThrow(/^TOLLGATE_SMTP_URL must be an smtp or smtps URL .* \/ is %2F/);
    expect(() => read(url)).not.toThrow(/kept/);
  });
});
