import { Injectable } from '@nestjs/common';
import { createTransport, type Transporter } from 'nodemailer';
import { ConsoleOptions } from '../options';

/** For the server to accept a connection. */
const CONNECT_MS = 5_000;
/** For a whole mail that a request waits for. */
const ASKED_LIMIT_MS = 10_000;
/** For any other whole mail. Servers that scan mails take longer. */
const LIMIT_MS = 60_000;

/** A mail that the server did not take, or of which it did not say so. */
export class MailError extends Error {
  constructor(
    why: string,
    /** The server has the whole mail, and may deliver it. */
    readonly mayHaveArrived: boolean,
  ) {
    super(mayHaveArrived ? `${why}; the server has the mail, and may deliver it` : why);
  }
}

/** Sends invitations, links for new passwords, and notices of them, if an SMTP server is configured. */
@Injectable()
export class Mailer {
  private readonly transport: Transporter | null;
  private readonly from: string;
  /** The mails that the server has whole, by their signals. */
  private readonly handedOver = new WeakSet<AbortSignal>();

  constructor({ mail }: ConsoleOptions) {
    const timeouts = { connectionTimeout: CONNECT_MS, greetingTimeout: LIMIT_MS, socketTimeout: LIMIT_MS };
    this.transport = mail === null ? null : createTransport({ url: mail.url, ...timeouts });
    this.transport?.use('stream', ({ message, data }, done) => {
      message.processFunc((text) => text.once('end', () => this.handedOver.add(data.signal!)));
      done();
    });
    this.from = mail?.from ?? '';
  }

  get isConfigured(): boolean {
    return this.transport !== null;
  }

  /** Rejects with MailError when the server does not take the message. */
  async sendInvitation(to: string, { link, tenantName }: { link: string; tenantName: string }): Promise<void> {
    const text = `You are invited to ${tenantName} on Tollgate. This link works once, for seven days:\n\n${link}\n`;
    await this.send(to, 'Your invitation', text, ASKED_LIMIT_MS);
  }

  /** Rejects with MailError when the server does not take the message. */
  async sendRecovery(to: string, link: string): Promise<void> {
    const text =
      `Somebody asked for a new password of your account on Tollgate. This link sets it. It works once, for an hour:` +
      `\n\n${link}\n\nIf it was not you, ignore this mail: your password stays as it is.\n`;
    await this.send(to, 'Your new password', text);
  }

  /** Rejects with MailError when the server does not take the message. */
  async sendPasswordSet(to: string, { removed, again }: { removed: string; again: string }): Promise<void> {
    const text =
      `A link has set a new password of your account on Tollgate. All sessions have ended, and all ${removed} were ` +
      `removed.\n\nIf it was not you, set the password again, and tell an operator:\n\n${again}\n`;
    await this.send(to, 'Your password was set', text);
  }

  private async send(to: string, subject: string, text: string, limitMs = LIMIT_MS): Promise<void> {
    if (!this.transport) throw new Error('no SMTP server is configured');
    const signal = AbortSignal.timeout(limitMs);
    try {
      // An object, because a text would be parsed: a name or address cannot add recipients.
      await this.transport.sendMail({ from: this.from, to: { name: '', address: to }, subject, text, signal });
    } catch (error) {
      const { message, responseCode } = error as Error & { responseCode?: number };
      const why = signal.aborted ? `the mail server took longer than ${limitMs / 1_000} s` : message;
      throw new MailError(withoutAddress(why, to), this.handedOver.has(signal) && responseCode === undefined);
    }
  }
}

/** Servers repeat the address that they refuse, and callers log the message. */
function withoutAddress(message: string, address: string): string {
  const pattern = address.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  return message.replaceAll(new RegExp(pattern, 'gi'), '[hidden]');
}
