import { configureLogging } from '@tollgate/runtime';
import type { IncomingMessage } from 'node:http';
import { CredentialGuard } from './credential-guard';

configureLogging({ level: 'silent', pretty: false });
let nowMs: number;
beforeEach(() => (nowMs = 1_000));
const from = (remoteAddress: string, forwarded?: string) =>
  ({ socket: { remoteAddress }, headers: { 'x-forwarded-for': forwarded } }) as unknown as IncomingMessage;
const fail = (guard: CredentialGuard, request: IncomingMessage, times = 100) => {
  for (let time = 0; time < times; time++) expect(guard.failed(request)).toBe(0);
};

describe('wrong credentials', () => {
  it('of an address are checked 100 times in a minute, without effect on others', () => {
    const guard = new CredentialGuard(undefined, () => nowMs);
    fail(guard, from('192.0.2.1'), 99);
    expect(guard.waitMs(from('192.0.2.1'))).toBe(0);
    fail(guard, from('192.0.2.1'), 1);
    expect(guard.waitMs(from('192.0.2.1'))).toBe(60_000);
    expect(guard.waitMs(from('192.0.2.2'))).toBe(0);
    nowMs += 60_000;
    expect(guard.waitMs(from('192.0.2.1'))).toBe(0);
  });

  it('do not lock out a valid one that came from the address before, and are limited there too', () => {
    const guard = new CredentialGuard(undefined, () => nowMs);
    guard.admitted(from('192.0.2.1'));
    fail(guard, from('192.0.2.1'));
    expect(guard.waitMs(from('192.0.2.1'))).toBe(0);
    expect(guard.failed(from('192.0.2.1'))).toBe(60_000);
  });

  it('do not lock out a connection that had a valid one, however many other addresses had one since', () => {
    const guard = new CredentialGuard(undefined, () => nowMs);
    const connection = from('192.0.2.1');
    guard.admitted(connection);
    for (let n = 0; n < 2_000; n++) guard.admitted(from(`10.0.${n >> 8}.${n & 255}`));
    fail(guard, from('192.0.2.1'));
    expect(guard.waitMs(connection)).toBe(0);
    // Another connection of the address is not known any more.
    expect(guard.waitMs(from('192.0.2.1'))).toBe(60_000);
  });

  it('keep an address known that goes on being used', () => {
    const guard = new CredentialGuard(undefined, () => nowMs);
    guard.admitted(from('192.0.2.1'));
    fail(guard, from('192.0.2.1'));
    for (let n = 0; n < 2_000; n++) {
      guard.admitted(from(`10.0.${n >> 8}.${n & 255}`));
      expect(guard.waitMs(from('192.0.2.1'))).toBe(0);
    }
  });

  it('are counted by the address that a trusted proxy names', () => {
    const guard = new CredentialGuard('10.0.0.0/8', () => nowMs);
    fail(guard, from('10.0.0.1', '203.0.113.9'));
    expect(guard.waitMs(from('10.0.0.2', '203.0.113.9'))).toBe(60_000);
    expect(guard.waitMs(from('10.0.0.1', '203.0.113.8'))).toBe(0);
    const connection = from('10.0.0.1', '203.0.113.8');
    guard.admitted(connection);
    // The next request of the same connection is another client's.
    guard.admitted({ ...connection, headers: { 'x-forwarded-for': '203.0.113.7' } } as unknown as IncomingMessage);
    for (const client of ['203.0.113.8', '203.0.113.7']) {
      fail(guard, from('10.0.0.1', client));
      expect(guard.waitMs(from('10.0.0.1', client))).toBe(0);
    }
  });
});
