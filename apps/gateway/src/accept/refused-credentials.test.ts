import { configureLogging } from '@tollgate/runtime';
import { RefusedCredentials } from './refused-credentials';

configureLogging({ level: 'silent', pretty: false });
let nowMs: number;
const LIMITS = { component: 'operator', credential: 'secret', maxOfAddress: 10, maxOfAll: 200 };
let refused: RefusedCredentials;
beforeEach(() => {
  nowMs = 1_000;
  refused = new RefusedCredentials(LIMITS, () => nowMs);
});
const fail = (address: string, times: number) => {
  for (let time = 0; time < times; time++) refused.add(address);
};

describe('the guard against guessed secrets', () => {
  it('checks ten wrong secrets of an address in a minute, without effect on other addresses', () => {
    fail('10.0.0.1', 9);
    expect(refused.waitMs('10.0.0.1')).toBe(0);
    nowMs += 20_000;
    fail('10.0.0.1', 1);
    expect(refused.waitMs('10.0.0.1')).toBe(40_000);
    expect(refused.waitMs('10.0.0.2')).toBe(0);
    nowMs += 40_000;
    expect(refused.waitMs('10.0.0.1')).toBe(0);
  });

  it('checks one wrong secret of each address after 200 from all, and never locks out an address without any', () => {
    for (let n = 0; n < 200; n++) refused.add(`10.0.${n >> 8}.${n & 255}`);
    expect(refused.waitMs('10.0.0.5')).toBeGreaterThan(0);
    expect(refused.waitMs('192.168.0.1')).toBe(0);
    refused.add('192.168.0.1');
    expect(refused.waitMs('192.168.0.1')).toBeGreaterThan(0);
  });

  it('counts the addresses of a /64 as one, and a mapped IPv4 address as IPv4', () => {
    fail('2001:db8:1:2::1', 5);
    fail('2001:db8:1:2:ffff::9', 5);
    expect(refused.waitMs('2001:DB8:1:2::7')).toBeGreaterThan(0);
    expect(refused.waitMs('2001:db8:1:3::1')).toBe(0);
    fail('::ffff:10.0.0.1', 10);
    expect(refused.waitMs('10.0.0.1')).toBeGreaterThan(0);
    expect(refused.waitMs('::1')).toBe(0);
  });

  it('remembers a bounded number of addresses', () => {
    for (let n = 0; n < 5_000; n++) fail(`10.1.${n >> 8}.${n & 255}`, 10);
    expect(refused.waitMs('10.1.0.0')).toBe(0);
    expect(refused.waitMs('10.1.19.135')).toBeGreaterThan(0);
  });
});
