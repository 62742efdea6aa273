import { MustBe } from './config-rules';

/** "simulator:", or an absolute http(s) URL to which a path can be appended: without user, query or fragment. */
export const IsBackendUrl = (): PropertyDecorator =>
  MustBe(
    '"simulator:" or an http(s) URL such as http://127.0.0.1:8000/v1, ' +
      'with a port from 1 to 65535 and without user, query or #',
    isBackendUrl,
  );

function isBackendUrl(value: unknown): boolean {
  if (value === 'simulator:') return true;
  // `new URL` accepts some typing errors, which are refused here: blanks around it, a missing slash, an empty "?".
  if (typeof value !== 'string' || !/^https?:\/\/[^\s?#@\\/][^\s?#@\\]*$/.test(value) || !URL.canParse(value))
    return false;
  const { hostname, port, username, password } = new URL(value);
  return hostname !== '' && port !== '0' && username === '' && password === '';
}
