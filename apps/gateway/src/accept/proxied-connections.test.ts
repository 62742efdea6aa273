import { assertRuns, eventually, RawSocket } from '@tollgate/testing';
import * as fc from 'fast-check';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { ClientAddresses } from '@tollgate/runtime';
import { readProxyHeader } from './proxy-header';
import { acceptingServer } from './server';

const REQUEST = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n';
const LAST = 'GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n';
const SIGNATURE = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1');
const v2 = (command: number, family: number, rest: readonly number[]) =>
  Buffer.concat([SIGNATURE, Buffer.from([command, family, 0, rest.length, ...rest])]);
const V2_IPV4 = v2(0x21, 0x11, [192, 0, 2, 7, 10, 0, 0, 1, 0, 80, 0, 81]);
const V2_IPV6 = v2(0x21, 0x21, [0x20, 1, 0xd, 0xb8, ...Array(11).fill(0), 7, ...Array(16).fill(0), 0, 80, 0, 81]);

const servers: Server[] = [];
afterAll(() => Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve)))));

/** A port that answers each request with the address of its client. */
async function open(trusted: string | undefined): Promise<string> {
  const addresses = new ClientAddresses(trusted);
  const server = acceptingServer((request, response) => void response.end(`<${addresses.of(request)}>`), {
    port: 'public',
    maxConnections: Infinity,
    requestTimeoutMs: 60_000,
    envelope: ({ message }) => message,
    ...(trusted !== undefined && { isProxy: (address: string) => addresses.isProxy(address) }),
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

describe('the PROXY header of a trusted proxy', () => {
  it.each([
    ['version 1', Buffer.from('PROXY TCP4 192.0.2.7 10.0.0.1 80 81\r\n'), '192.0.2.7'],
    ['version 1, IPv6', Buffer.from('PROXY TCP6 2001:db8::7 ::1 80 81\r\n'), '2001:db8::7'],
    ['version 1, unknown', Buffer.from('PROXY UNKNOWN\r\n'), '127.0.0.1'],
    ['version 2', V2_IPV4, '192.0.2.7'],
    ['version 2, IPv6', V2_IPV6, '2001:db8:0:0:0:0:0:7'],
    ['version 2, for itself', v2(0x20, 0, []), '127.0.0.1'],
    ['none', Buffer.alloc(0), '127.0.0.1'],
  ])('names the client of all requests of its connection (%s)', async (_, header, address) => {
    const url = await open('loopback');
    const whole = new RawSocket(url).send(Buffer.concat([header, Buffer.from(REQUEST)]));
    await whole.until(`<${address}>`);
    expect((await whole.send(LAST).toEnd()).split(`<${address}>`)).toHaveLength(3);
    const inTwo = new RawSocket(url).send(header.subarray(0, 5));
    // The first part is read by itself: another connection is served meanwhile.
    await new RawSocket(url).send(LAST).toEnd();
    expect(await inTwo.send(Buffer.concat([header.subarray(5), Buffer.from(LAST)])).toEnd()).toContain(`<${address}>`);
  });

  it.each([
    ['PROXY TCP4 2001:db8::7 ::1 80 81\r\n'],
    ['PROXY TCP5 192.0.2.7 10.0.0.1 80 81\r\n'],
    [`PROXY ${'x'.repeat(200)}`],
    [v2(0x31, 0x11, [0, 0, 0, 0])],
    [v2(0x21, 0x11, [1, 2])],
    [Buffer.concat([SIGNATURE, Buffer.from([0x21, 0x11, 0xff, 0xff])])],
  ])('ends its connection if it is malformed (%j)', async (header) => {
    const connection = new RawSocket(await open('loopback')).send(header).send(LAST);
    expect(await connection.toEnd()).toBe('');
  });

  it('does not keep a server from closing that still waits for it', async () => {
    const silent = new RawSocket(await open('loopback'));
    const server = servers.at(-1)!;
    await eventually(async () => {
      const count = await new Promise<number>((resolve) => server.getConnections((_, number) => resolve(number)));
      expect(count).toBe(1);
    });
    const closed = new Promise((resolve) => server.close(resolve));
    server.closeAllConnections();
    await closed;
    expect(await silent.toEnd()).toBe('');
  });

  it('does not replace X-Forwarded-For, which the client could send itself', async () => {
    const forwarded = LAST.replace('Host: a', 'Host: a\r\nX-Forwarded-For: 198.51.100.9');
    const url = await open('loopback');
    const direct = new RawSocket(url).send('PROXY TCP4 192.0.2.7 10.0.0.1 80 81\r\n').send(forwarded);
    expect(await direct.toEnd()).toContain('<192.0.2.7>');
    expect(await new RawSocket(url).send(forwarded).toEnd()).toContain('<198.51.100.9>');
  });
});

it.each([undefined, '10.0.0.0/8'])('a PROXY header of anyone else is no HTTP (trusted: %s)', async (trusted) => {
  const connection = new RawSocket(await open(trusted)).send('PROXY TCP4 192.0.2.7 10.0.0.1 80 81\r\n').send(LAST);
  expect(await connection.toEnd()).toMatch(/^HTTP\/1\.1 400 /);
});

it('a header is read alike however its bytes are divided, and random bytes are none or malformed', async () => {
  await assertRuns(
    fc.property(fc.constantFrom(V2_IPV4, V2_IPV6), fc.nat(), (header, cut) => {
      const part = header.subarray(0, cut % header.length);
      expect(readProxyHeader(part)).toEqual({ kind: 'incomplete' });
      expect(readProxyHeader(header)).toMatchObject({ kind: 'header', bytes: header.length });
    }),
    { leastRuns: 200, seed: 20_261_125 },
  );
  await assertRuns(
    fc.property(fc.uint8Array({ minLength: 1, maxLength: 300 }), (bytes) => {
      const { kind } = readProxyHeader(Buffer.concat([SIGNATURE, bytes]));
      expect(['incomplete', 'malformed', 'header']).toContain(kind);
    }),
    { leastRuns: 200, seed: 20_261_125 },
  );
});
