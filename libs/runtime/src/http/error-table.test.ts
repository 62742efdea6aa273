import { inForce, RequestError, UnavailableError } from '@tollgate/contracts';
import { foreignError } from './error-table';

const TABLE = {
  key_revoked: { status: 409, message: 'The key is revoked.' },
  unavailable: { status: 503, message: 'Try again shortly.' },
};
const shown = (error: unknown) => foreignError(TABLE, error, (status) => `other_${status}`);

test('a refusal keeps a code that is a client error of the table, and the text that it has', () => {
  expect(shown(new RequestError('key_revoked'))).toEqual({ code: 'key_revoked' });
  expect(shown(new RequestError('key_revoked', 'Key 7 is.'))).toEqual({ code: 'key_revoked', message: 'Key 7 is.' });
});

test('a refusal with a code that is not for callers is an internal error without its text', () => {
  for (const code of ['not_in_the_table', 'toString', 'unavailable'])
    expect(shown(new RequestError(code, 'inner'))).toEqual({ code: 'internal_error' });
});

test('a service that does not answer is unavailable, without the reason', async () => {
  expect(shown(new UnavailableError('auth did not answer'))).toEqual({ code: 'unavailable' });
  const change = inForce(Promise.reject(new UnavailableError('auth did not answer')), 'Repeat the change.');
  const refused: unknown = await change.catch((error: unknown) => error);
  expect(shown(refused)).toEqual({ code: 'unavailable', message: 'Repeat the change.' });
});

test('any other error has a code by its HTTP status alone', () => {
  class HttpException extends Error {
    constructor(private readonly status: number) {
      super('inner');
    }
    getStatus(): number {
      return this.status;
    }
  }
  expect(shown(Object.assign(new Error('inner'), { statusCode: 413 }))).toEqual({ code: 'payload_too_large' });
  expect(shown(new HttpException(415))).toEqual({ code: 'unsupported_media_type' });
  expect(shown(new HttpException(418))).toEqual({ code: 'other_418' });
  for (const error of [new Error('inner'), 'inner', null]) expect(shown(error)).toEqual({ code: 'other_500' });
});
