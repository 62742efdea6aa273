import { loggedPath } from './logged-path';

const KEY = 'sk-svc-0123456789abcdefghijABCDEFGHIJ';

it.each([
  ['/v1/models', '/v1/models'],
  ['/v1/models?key=' + KEY, '/v1/models'],
  ['/v1/models?', '/v1/models'],
  ['/v1/models#' + KEY, '/v1/models'],
  [`/_api/v1/keys/${KEY}`, '/_api/v1/keys/[hidden]'],
  [`/v1/${KEY}/models`, '/v1/[hidden]/models'],
  ['/v1/fma_abc', '/v1/[hidden]'],
  ['/v1/tgo_abc', '/v1/[hidden]'],
  [`/v1/x${KEY.toUpperCase()}`, '/v1/[hidden]'],
  ['/v1/%73k-svc-abc', '/v1/[hidden]'],
  ['/v1/sk%2Dsvc%2dabc', '/v1/[hidden]'],
  ['/v1/sk%252Dsvc%252Dabc', '/v1/[hidden]'],
  ['/v1%2Fsk-svc-abc', '/[hidden]'],
  [`http://user:password@host/v1/${KEY}`, '[hidden]'],
  [`//${KEY}@host/`, '//[hidden]/'],
  ['*', '[hidden]'],
  ['/%', '/%'],
])('the target %s is logged as %s', (url, shown) => expect(loggedPath(url)).toBe(shown));

it('shortens a long path to 200 characters', () =>
  expect(loggedPath(`/${'x'.repeat(10_000)}`).length).toBeLessThanOrEqual(200));
