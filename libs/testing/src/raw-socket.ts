import { connect, type Socket } from 'node:net';

/** An answer that never ends: far longer than a busy machine takes to read ten MiB. */
const SILENCE_MS = 20_000;

/** A connection of which every byte is the test's own. */
export class RawSocket {
  text = '';
  /** Resolves when the other side has closed it, with or without a reset. */
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

  /** All that came, when `part` is in it; rejects when the connection is closed without. */
  async until(part: string): Promise<string> {
    await new Promise<void>((resolve) => {
      this.waiting.push({ for: (text) => text.includes(part), then: resolve });
      this.look();
    });
    if (!this.text.includes(part)) throw new Error(`closed without ${part}: ${this.text}`);
    return this.text;
  }

  /** All that came, when the other side has closed. */
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
