import type { IncomingMessage } from 'node:http';
import { areProxies, ClientAddresses, networkOf, wrongProxies } from './client-address';

const from = (remoteAddress: string, forwarded?: string) =>
  ({ socket: { remoteAddress }, headers: { 'x-forwarded-for': forwarded } }) as unknown as IncomingMessage;

describe('the address of a client', () => {
  it('is that of the connection if no proxy is trusted, whatever the request says', () => {
    const addresses = new ClientAddresses();
    expect(addresses.of(from('192.0.2.1', '203.0.113.9'))).toBe('192.0.2.1');
    expect(addresses.of(from('::ffff:192.0.2.1', '203.0.113.9'))).toBe('192.0.2.1');
  });

  it('is the last one before the trusted proxies', () => {
    const addresses = new ClientAddresses('10.0.0.0/8,192.0.2.7,loopback');
    expect(addresses.of(from('10.1.2.3', '203.0.113.9'))).toBe('203.0.113.9');
    expect(addresses.of(from('::ffff:10.1.2.3', '6.6.6.6, 203.0.113.9, 192.0.2.7'))).toBe('203.0.113.9');
    expect(addresses.of(from('::1', '2001:db8::5'))).toBe('2001:db8::5');
    // A client that is not a proxy cannot choose its address.
    expect(addresses.of(from('203.0.113.9', '10.0.0.1'))).toBe('203.0.113.9');
  });

  it.each([
    ['203.0.113.9:4711', '203.0.113.9'],
    ['[2001:db8::5]:4711', '2001:db8::5'],
    ['[2001:db8::5]', '2001:db8::5'],
    ['203.0.113.9:x', '10.0.0.1'],
    ['203.0.113.9:4711:1', '10.0.0.1'],
    ['[203.0.113', '10.0.0.1'],
  ])('is read without the port that some proxies add: %s', (forwarded, address) => {
    expect(new ClientAddresses('private').of(from('10.0.0.1', forwarded))).toBe(address);
  });

  it('is that of the proxy that says nothing readable', () => {
    const addresses = new ClientAddresses('private');
    for (const forwarded of [undefined, '', 'unknown', '203.0.113.9, nonsense'])
      expect(addresses.of(from('192.168.0.1', forwarded))).toBe('192.168.0.1');
    expect(addresses.of(from('192.168.0.1', '203.0.113.9, 10.0.0.1, nonsense'))).toBe('192.168.0.1');
  });

  it('is read from a bounded part of a long list', () => {
    const addresses = new ClientAddresses('private');
    const list = ['203.0.113.9', ...Array.from({ length: 100 }, () => '10.0.0.1')].join(', ');
    expect(addresses.of(from('10.0.0.1', list))).toBe('10.0.0.1');
  });
});

it('a list of proxies has addresses, ranges, and names of groups', () => {
  for (const text of ['10.0.0.1', '10.0.0.0/8,fd00::/8', 'loopback,private', '::1'])
    expect([text, areProxies(text)]).toEqual([text, true]);
  for (const text of ['', 'haproxy', '10.0.0.0/33', '10.0.0/8', '::1/129', '10.0.0.1/8/9', '10.0.0.1, 10.0.0.2', 'all'])
    expect([text, areProxies(text)]).toEqual([text, false]);
});

it('the first wrong entry of a list of proxies is named, and not all of a long one', () => {
  expect(wrongProxies('loopback,10.0.0.0/33,haproxy')).toBe('"10.0.0.0/33" is none of them');
  expect(wrongProxies('10.0.0.1, 10.0.0.2')).toBe('" 10.0.0.2" is none of them');
  expect(wrongProxies('x'.repeat(99))).toBe(`"${'x'.repeat(50)}…" is none of them`);
  expect(wrongProxies(Array(101).fill('10.0.0.1').join(','))).toBe('there are more than 100');
});

it('limits count a /64 of IPv6 as one address', () => {
  const one = ['2001:db8:1:2::1', '2001:DB8:1:2:a:b:c:d', '2001:db8:1:2::', '2001:db8:1:2::1%eth0'];
  for (const address of one) expect([address, networkOf(address)]).toEqual([address, '2001:db8:1:2']);
  expect(networkOf('2001:db8:1:3::1')).toBe('2001:db8:1:3');
  expect(networkOf('::ffff:192.0.2.1')).toBe('192.0.2.1');
});
