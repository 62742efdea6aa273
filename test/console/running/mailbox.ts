import { SMTPServer } from 'smtp-server';
import type { AddressInfo } from 'node:net';

/** Mail to this address is always refused. */
export const REFUSED_ADDRESS = 'refused@example.com';

/** A real SMTP server that keeps what it gets. */
export class Mailbox {
  readonly received: { to: string[]; text: string }[] = [];
  readonly refused = new Set([REFUSED_ADDRESS]);

  private constructor(private readonly server: SMTPServer) {}

  static async open(): Promise<Mailbox> {
    const server: SMTPServer = new SMTPServer({
      authOptional: true,
      disabledCommands: ['STARTTLS'],
      onRcptTo({ address }, _session, done) {
        done(mailbox.refused.has(address) ? new Error('no such mailbox') : undefined);
      },
      onData(stream, session, done) {
        const chunks: Buffer[] = [];
        stream.on('data', (chunk: Buffer) => chunks.push(chunk));
        stream.on('end', () => {
          const to = session.envelope.rcptTo.map(({ address }) => address);
          mailbox.received.push({ to, text: Buffer.concat(chunks).toString().replaceAll('=\r\n', '') });
          done();
        });
      },
    });
    const mailbox = new Mailbox(server);
    await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
    return mailbox;
  }

  get url(): string {
    return `smtp://127.0.0.1:${(this.server.server.address() as AddressInfo).port}`;
  }

  /** The newest link that went to an address. */
  linkTo(email: string): string {
    const links = this.received.filter(({ to }) => to.includes(email)).map(({ text }) => /http\S+#\S+/.exec(text)?.[0]);
    const link = links.findLast((found) => found !== undefined);
    if (link === undefined) throw new Error(`no link went to ${email}`);
    return link;
  }

  close(): Promise<void> {
    return new Promise((closed) => this.server.close(() => closed()));
  }
}
