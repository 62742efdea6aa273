import { Injectable } from '@nestjs/common';
import { createTransport, type Transporter } from 'nodemailer';
import { ConsoleOptions } from '../options';

/** For the server to accept a connection, and each of its answers. */
const TIMEOUT_MS = 5_000;

/** Sends invitations, if an SMTP server is configured. */
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
    if (!this.transport) throw new Error('no SMTP server is configured');
    const text = `You are invited to ${tenantName} on Tollgate. This link works once, for seven days:\n\n${link}\n`;
    // An object, because a text would be parsed: a name or address cannot add recipients.
    await this.transport.sendMail({ from: this.from, to: { name: '', address: to }, subject: 'Your invitation', text });
  }
}
