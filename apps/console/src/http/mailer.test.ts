import { SMTPServer } from 'smtp-server';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { Mailer } from './mailer';

const options = { databaseUrl: '', secret: '', oidc: null };
const invitation = { link: 'http://localhost/console/invitation#secret', tenantName: 'Acme\r\nBcc: all@example.com' };

it('an invitation goes to its address only, whatever the name of the tenant is', async () => {
  const received: { to: string[]; text: string }[] = [];
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    onData(stream, session, done) {
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.on('end', () => {
        const to = session.envelope.rcptTo.map(({ address }) => address);
        received.push({ to, text: Buffer.concat(chunks).toString() });
        done();
      });
    },
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  try {
    const { port } = server.server.address() as AddressInfo;
    const mailer = new Mailer({ ...options, mail: { url: `smtp://127.0.0.1:${port}`, from: 'tollgate@example.com' } });
    expect(mailer.isConfigured).toBe(true);
    await mailer.sendInvitation('ada@example.com', invitation);
    const next = 'http://localhost/console/reset-password#secret';
    await mailer.sendRecovery('ada@example.com', next);
    await mailer.sendPasswordSet('ada@example.com', { removed: 'passkeys', again: 'http://localhost/again' });
    expect(received.map(({ to }) => to)).toEqual([['ada@example.com'], ['ada@example.com'], ['ada@example.com']]);
    expect(received[2]!.text.replaceAll('=\r\n', '')).toContain('http://localhost/again');
    expect(received[1]!.text.replaceAll('=\r\n', '')).toContain(next);
    const [head = '', ...body] = received[0]!.text.split('\r\n\r\n');
    expect(head).toMatch(/^From: tollgate@example\.com$/m);
    expect(head).not.toContain('Bcc');
    expect(body.join('').replaceAll('=\r\n', '')).toContain(invitation.link);
  } finally {
    await new Promise<void>((closed) => server.close(() => closed()));
  }
});

it('without a server for mail, nothing is sent', async () => {
  const mailer = new Mailer({ ...options, mail: null });
  expect(mailer.isConfigured).toBe(false);
  await expect(mailer.sendInvitation('ada@example.com', invitation)).rejects.toThrow('no SMTP server');
});

it('an invitation that no server takes is an error', async () => {
  const mailer = new Mailer({ ...options, mail: { url: 'smtp://127.0.0.1:1', from: 'tollgate@example.com' } });
  await expect(mailer.sendInvitation('ada@example.com', invitation)).rejects.toThrow(/ECONNREFUSED/);
});

it('the error of a refused address says why, without the address', async () => {
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    onRcptTo: ({ address }, _session, done) => done(new Error(`<${address.toUpperCase()}>: no such mailbox`)),
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  try {
    const { port } = server.server.address() as AddressInfo;
    const mailer = new Mailer({ ...options, mail: { url: `smtp://127.0.0.1:${port}`, from: 'tollgate@example.com' } });
    const error = await mailer.sendInvitation('a+da@example.com', invitation).catch((reason: unknown) => reason);
    expect(String(error)).toMatch(/^Error: .*<\[hidden\]>: no such mailbox$/);
  } finally {
    await new Promise<void>((closed) => server.close(() => closed()));
  }
});

describe('a server that leaves it open whether it has the mail', () => {
  const sockets = new Set<Socket>();
  let server: Server;
  const serve = async (onSocket: (socket: Socket) => void): Promise<Mailer> => {
    server = createServer((socket) => {
      sockets.add(socket.on('error', () => {}));
      onSocket(socket);
    });
    await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
    const { port } = server.address() as AddressInfo;
    return new Mailer({ ...options, mail: { url: `smtp://127.0.0.1:${port}`, from: 'tollgate@example.com' } });
  };
  afterEach(() => {
    jest.restoreAllMocks();
    for (const socket of sockets) socket.destroy();
    server.close();
  });

  it.each([
    ['the whole mail', true],
    ['the recipient', false],
  ])('hangs up after %s', async (_, mayHaveArrived) => {
    const mailer = await serve((socket) => {
      let [said, isText] = ['', false];
      socket.write('220 ready\r\n');
      socket.on('data', (chunk) => {
        said += chunk.toString();
        if (!said.endsWith(isText ? '\r\n.\r\n' : '\r\n')) return;
        if (isText || (said.startsWith('RCPT') && !mayHaveArrived)) return void socket.destroy();
        isText = said.startsWith('DATA');
        said = '';
        socket.write(isText ? '354 go on\r\n' : '250 ok\r\n');
      });
    });
    await expect(mailer.sendRecovery('ada@example.com', 'http://localhost/')).rejects.toMatchObject({ mayHaveArrived });
  });

  it('does not answer within the limit of the whole mail', async () => {
    const limit = new AbortController();
    const timeout = jest.spyOn(AbortSignal, 'timeout').mockReturnValue(limit.signal);
    const mailer = await serve(() => limit.abort());
    await expect(mailer.sendInvitation('ada@example.com', invitation)).rejects.toThrow(
      'the mail server took longer than 10 s',
    );
    expect(timeout).toHaveBeenCalledWith(10_000);
  });
});

it('a server without TLS gets neither password nor mail, if the address requires TLS', async () => {
  const commands: string[] = [];
  const server = new SMTPServer({
    disabledCommands: ['STARTTLS'],
    allowInsecureAuth: true,
    onAuth(_auth, _session, done) {
      commands.push('AUTH');
      done(null, { user: 'tollgate' });
    },
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  try {
    const { port } = server.server.address() as AddressInfo;
    const url = `smtp://tollgate:secret@127.0.0.1:${port}?requireTLS=true`;
    const mailer = new Mailer({ ...options, mail: { url, from: 'tollgate@example.com' } });
    await expect(mailer.sendInvitation('ada@example.com', invitation)).rejects.toThrow(/STARTTLS/);
    expect(commands).toEqual([]);
  } finally {
    await new Promise<void>((closed) => server.close(() => closed()));
  }
});
