import { UnavailableError } from '@tollgate/contracts';
import { publicError } from './envelope';
import { ConsoleError } from './errors';

const shown = (error: unknown) => {
  const { code, headers } = publicError(error);
  return [code, headers];
};
const RETRY = { 'retry-after': '1' };

it('PostgreSQL or a service that does not answer is unavailable, with the time to wait', () => {
  const stopping = Object.assign(new Error('terminating connection'), { driverError: { code: '57P01' } });
  for (const error of [stopping, new Error('timeout exceeded when trying to connect'), new UnavailableError('auth')])
    expect(shown(error)).toEqual(['unavailable', RETRY]);
});

it('a mistake in a statement is ours, and our own errors stay as they are', () => {
  expect(shown(Object.assign(new Error('syntax error'), { code: '42601' }))).toEqual(['internal_error', {}]);
  const own = new ConsoleError('last_owner');
  expect(publicError(own)).toBe(own);
});

it('a session that ends while the library extends it is none', () => {
  expect(shown(Object.assign(new Error('Failed to get session'), { statusCode: 401 }))).toEqual([
    'unauthenticated',
    {},
  ]);
});
