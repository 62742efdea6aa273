import { Injectable } from '@nestjs/common';
import { createTransport, type Transporter } from 'nodemailer';
import { ConsoleOptions } from '../options';

/** For the server to accept a connection, and each of its answers. */
const TIMEOUT_MS = 5_000;

/** Sends invitations, links for new passwords, and notices of them, if an SMTP server is configured. */
@Injectable()
export class Mailer {
  private readonly transport: Transporter | null;
  private readonly from: string;

  constructor({ mail }: ConsoleOptions) {
    const timeouts = { connectionTimeout: TIMEOUT_MS, greetingTimeout: TIMEOUT_MS, socketTimeout: TIMEOUT_MS };
    this.transport = mail === null ? null : createTransport({ url: mail.url, ...timeouts });
    this.from = mail?.from ?? '';
  }

  get isConfigured(): boolean {
    return this.transport !== null;
  }

  /** Rejects when the server does not take the message. */
  async sendInvitation(to: string, { link, tenantName }: { link: string; tenantName: string }): Promise<void> {
    const text = `You are invited to ${tenantName} on Tollgate. This link works once, for seven days:\n\n${link}\n`;
    await this.send(to, 'Your invitation', text);
  }

  /** Rejects when the server does not take the message. */
  async sendRecovery(to: string, link: string): Promise<void> {
    const text =
      `Somebody asked for a new password of your account on Tollgate. This link sets it. It works once, for an hour:` +
      `\n\n${link}\n\nIf it was not you, ignore this mail: your password stays as it is.\n`;
    await this.send(to, 'Your new password', text);
  }

  /** Rejects when the server does not take the message. */
  async sendPasswordSet(to: string, { removed, again }: { removed: string; again: string }): Promise<void> {
    const text =
      `A link has set a new password of your account on Tollgate. All sessions have ended, and all ${removed} were ` +
      `removed.\n\nIf it was not you, set the password again, and tell an operator:\n\n${again}\n`;
    await this.send(to, 'Your password was set', text);
  }

  private async send(to: string, subject: string, text: string): Promise<void> {
    if (!this.transport) throw new Error('no SMTP server is configured');
    try {
      // An object, because a text would be parsed: a name or address cannot add recipients.
      await this.transport.sendMail({ from: this.from, to: { name: '', address: to }, subject, text });
    } catch (error) {
      throw new Error(withoutAddress((error as Error).message, to));
    }
  }
}

/** Servers repeat the address that they refuse, and callers log the message. */
function withoutAddress(message: string, address: string): string {
  const pattern = address.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  return message.replaceAll(new RegExp(pattern, 'gi'), '[hidden]');
}
