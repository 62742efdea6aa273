import { isAllowedHost } from './allowed-hosts';

const NAMES = ['tollgate.internal', 'Gateway'];

describe('the check of the Host header', () => {
  it.each([
    '127.0.0.1:8081',
    '10.1.2.3',
    '[::1]:8081',
    '[fe80::1]',
    'localhost',
    'LOCALHOST:8081',
    'localhost.',
    'gateway:8081',
    'tollgate.internal',
  ])('allows %s', (host) => expect(isAllowedHost(host, NAMES)).toBe(true));

  it.each([
    'evil.example',
    'evil.example:8081',
    '127.0.0.1.evil.example',
    'localhost.evil.example',
    'tollgate.internal.evil.example',
    '[evil]',
    '',
    'a@127.0.0.1',
    '127.0.0.1:8081:80',
  ])('refuses %j', (host) => expect(isAllowedHost(host, NAMES)).toBe(false));

  it('allows a request without a Host, which no browser sends', () => expect(isAllowedHost(undefined, [])).toBe(true));
});
