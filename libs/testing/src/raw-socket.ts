import { connect, type Socket } from 'node:net';

/** Ends a silent connection. Far longer than a busy machine needs to read ten MiB. */
const SILENCE_MS = 20_000;

/** A TCP connection on which the test writes every byte itself. */
export class RawSocket {
  text = '';
  /** Resolves when the connection is closed, with or without a reset. */
  readonly closed: Promise<void>;
  private readonly socket: Socket;
  private readonly waiting: { for: (text: string) => boolean; then: () => void }[] = [];
  private isClosed = false;

  constructor(url: string) {
    this.socket = connect(Number(new URL(url).port), '127.0.0.1');
    this.socket.setTimeout(SILENCE_MS, () => this.socket.destroy());
    this.socket.on('data', (chunk) => {
      this.text += chunk.toString('latin1');
      this.look();
    });
    this.socket.on('error', () => {});
    this.closed = new Promise((resolve) =>
      this.socket.on('close', () => {
        this.isClosed = true;
        this.look();
        resolve();
      }),
    );
  }

  send(bytes: string | Buffer): this {
    this.socket.write(bytes);
    return this;
  }

  /** Says that no more bytes follow. The other side can still answer. */
  end(): this {
    this.socket.end();
    return this;
  }

  /** The received text, as soon as it contains `part`. Rejects if the connection closes before. */
  async until(part: string): Promise<string> {
    await new Promise<void>((resolve) => {
      this.waiting.push({ for: (text) => text.includes(part), then: resolve });
      this.look();
    });
    if (!this.text.includes(part)) throw new Error(`closed without ${part}: ${this.text}`);
    return this.text;
  }

  /** The received text, after the connection has closed. */
  async toEnd(): Promise<string> {
    await this.closed;
    return this.text;
  }

  destroy(): void {
    this.socket.destroy();
  }

  private look(): void {
    for (const one of this.waiting.splice(0)) {
      if (this.isClosed || one.for(this.text)) one.then();
      else this.waiting.push(one);
    }
  }
}
