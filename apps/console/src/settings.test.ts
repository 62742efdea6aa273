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
    expect(() => readSettings(env, [ConsoleSettings])).toThrow(new RegExp(`is set: ${missing} must be, too$`));
  });
});
