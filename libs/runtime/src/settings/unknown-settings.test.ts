import { unknownSettings } from './unknown-settings';

const unknownOf = (env: Record<string, string>, config = '') => unknownSettings(env, () => config);

it('a misspelled setting is named with the nearest one, once for all, and without its value', () => {
  expect(unknownOf({ TOLLGATE_PROT: '9999' })).toBe('TOLLGATE_PROT is not a setting; did you mean TOLLGATE_PORT?');
  expect(
    unknownOf({ TOLLGATE_OIDC_ISUER: 'secret', TOLLGATE_SOMETHING_ELSE: 'secret', TOLLGATE_SMTP_ULR_FILE: 'x' }),
  ).toBe(
    'TOLLGATE_OIDC_ISUER is not a setting; did you mean TOLLGATE_OIDC_ISSUER? ' +
      'TOLLGATE_SMTP_ULR_FILE is not a setting; did you mean TOLLGATE_SMTP_URL_FILE? ' +
      'TOLLGATE_SOMETHING_ELSE is not a setting.',
  );
});

it.each([
  ['a setting of this or another process', { TOLLGATE_PORT: '1', TOLLGATE_WORKERS: '1', TOLLGATE_IMAGES: 'local' }],
  ['a file of a secret', { TOLLGATE_METRICS_TOKEN_FILE: '/run/token' }],
  ['a family of settings', { TOLLGATE_REDIS_IMAGE: 'redis:8', TOLLGATE_GATEWAY_MEMORY_MIB: '4096' }],
  ['a variable of tests', { TOLLGATE_TEST_SEED: '1' }],
  ['an empty value', { TOLLGATE_PROT: '' }],
  ['a variable of others', { PORT: '1', MY_TOLLGATE_PROT: '1' }],
  [
    'what Kubernetes sets for a Service',
    {
      ...{ TOLLGATE_GATEWAY_SERVICE_HOST: '10.0.0.1', TOLLGATE_GATEWAY_SERVICE_PORT_HTTP: '8080' },
      ...{ TOLLGATE_GATEWAY_PORT: 'tcp://10.0.0.1:8080', TOLLGATE_GATEWAY_PORT_8080_TCP_ADDR: '10.0.0.1' },
    },
  ],
])('%s is not named', (_, env) => expect(unknownOf(env)).toBeUndefined());

it('a variable that tollgate.yaml names is none to warn about', () => {
  const env = { TOLLGATE_BACKEND_KEY: 'secret' };
  expect(unknownOf(env, 'apiKey: ${TOLLGATE_BACKEND_KEY}')).toBeUndefined();
  expect(unknownOf(env, 'apiKey: ${TOLLGATE_BACKEND}')).toBe('TOLLGATE_BACKEND_KEY is not a setting.');
});
