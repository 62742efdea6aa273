import { StartError } from '@tollgate/runtime';
import { LOCALHOST_CERTIFICATE, LOCALHOST_KEY } from '@tollgate/testing';
import { once } from 'node:events';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { explainDatabase } from './explain-database';
import { checkSchema } from './index';

const URL = 'postgres://tollgate:not-to-be-shown@db.example:5432/books?sslmode=verify-full';

/** The line that the user gets for an error, without the password. */
function line(error: unknown, url = URL): string {
  const explained = explainDatabase(error, url);
  expect(explained).toBeInstanceOf(StartError);
  const { message } = explained as StartError;
  expect(message).not.toContain('not-to-be-shown');
  expect(message.split('\n')).toHaveLength(1);
  return message;
}
const coded = (code: string, message = code) => Object.assign(new Error(message), { code });

describe('an error that prevents a connection becomes a line with the cure', () => {
  it.each([
    [coded('EHOSTUNREACH'), /^No network leads to db\.example:5432\/books \(EHOSTUNREACH\): check DATABASE_URL/],
    [coded('ENETUNREACH'), /^No network leads to db\.example:5432\/books \(ENETUNREACH\): check DATABASE_URL/],
    [coded('ETIMEDOUT', 'connect ETIMEDOUT 192.0.2.1:5432'), /^PostgreSQL at .* does not answer: check DATABASE_URL/],
    [
      coded('CERT_HAS_EXPIRED', 'certificate has expired'),
      /^The certificate of .* \(certificate has .*\): renew it\.$/,
    ],
    [coded('ERR_TLS_CERT_ALTNAME_INVALID'), /^The certificate of .* is not trusted .*: correct the host, or make one/],
    [
      coded('ERR_SSL_SSLV3_ALERT_CERTIFICATE_EXPIRED', 'sslv3 alert certificate expired'),
      /^PostgreSQL at .* refuses this TLS \(sslv3 alert .*\): .*\(sslcert=<file>&sslkey=<file>\)\.$/,
    ],
    [
      coded('28000', 'no pg_hba.conf entry for host "10.0.0.7", user "tollgate", database "books", no encryption'),
      /^PostgreSQL at .* allows no such connection \(.*no encryption\): if .* TLS, .*sslmode=verify-full.*pg_hba\.conf/,
    ],
    [
      coded('28000', 'connection requires a valid client certificate'),
      /^PostgreSQL at .* \(connection requires a valid client certificate\): name one in .*\(sslcert=<file>/,
    ],
    [
      coded('28000', 'role "tollgate" is not permitted to log in'),
      /refuses the user of DATABASE_URL \(role .* log in\)/,
    ],
    [
      coded('25006', 'cannot execute CREATE TABLE in a read-only transaction'),
      /cannot be used \(cannot execute CREATE/,
    ],
    [new AggregateError([], ''), /^PostgreSQL at db\.example:5432\/books cannot be used .*: check DATABASE_URL/],
    [new Error('SASL: client password must be a string'), /cannot be used \(SASL: .*\): check DATABASE_URL/],
  ])('%s', (error, expected) => {
    expect(line(error)).toMatch(expected);
  });

  it('but a defect is returned unchanged, with its stack', () => {
    const ours = Object.assign(coded('ENOENT'), { syscall: 'scandir', path: '/opt/tollgate/migrations' });
    for (const error of [coded('42601', 'syntax error'), coded('23505'), ours, new TypeError('x is not a function')])
      expect(explainDatabase(error, URL)).toBe(error);
  });
});

describe('a check of the schema over a real connection', () => {
  const servers: Server[] = [];
  const sockets = new Set<Socket>();
  afterEach(() => {
    for (const socket of sockets) socket.destroy();
    for (const server of servers.splice(0)) server.close();
  });

  /** A server that answers the request for TLS as PostgreSQL does, and continues from there. */
  async function answering(byte: 'S' | 'N', next: (socket: Socket) => void = () => {}): Promise<string> {
    const server = createServer((socket) => {
      sockets.add(socket);
      socket.on('error', () => {});
      socket.once('data', () => {
        socket.write(byte);
        next(socket);
      });
    });
    servers.push(server);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return `postgres://tollgate:not-to-be-shown@127.0.0.1:${(server.address() as AddressInfo).port}/books`;
  }

  const refusal = (url: string) =>
    checkSchema(url, { schema: 'x', directory: __dirname }).then(
      () => 'accepted',
      (error: unknown) => line(error, url),
    );

  it('names a server without TLS', async () => {
    const url = await answering('N');
    expect(await refusal(`${url}?sslmode=verify-full`)).toMatch(
      /^PostgreSQL at 127\.0\.0\.1:\d+\/books does not support TLS: leave sslmode out of DATABASE_URL/,
    );
  });

  it('names a server whose certificate no authority has signed', async () => {
    const tls = { isServer: true, cert: LOCALHOST_CERTIFICATE, key: LOCALHOST_KEY };
    const url = await answering('S', (socket) => new TLSSocket(socket, tls).on('error', () => {}));
    expect(await refusal(`${url}?sslmode=verify-full`)).toMatch(
      /^The certificate of PostgreSQL at 127\.0\.0\.1:\d+\/books is not trusted \(.*self-signed.*sslrootcert=<file>/,
    );
  });

  // A % that escapes nothing is accepted.
  it.each(['not-to-be-shown', '100%-secret'])(
    'names the missing file of an authority (password %j)',
    async (password) => {
      const url = (await answering('N')).replace('not-to-be-shown', password);
      expect(await refusal(`${url}?sslmode=verify-full&sslrootcert=/nonexistent/ca.pem`)).toBe(
        'DATABASE_URL names a file that cannot be read (/nonexistent/ca.pem: there is no such file or directory): ' +
          'correct it.',
      );
    },
  );
});
