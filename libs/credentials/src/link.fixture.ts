import { connect, createServer, type AddressInfo, type NetConnectOpts, type Server, type Socket } from 'node:net';

/** A TCP path to a server that a test can disturb. Each store under test has its own. */
export class Link {
  private readonly pairs = new Set<{ near: Socket; far: Socket | null }>();
  private fault: 'none' | 'refuses' | 'hangs' = 'none';
  private accepted = 0;
  private swallowed: readonly number[] = [];

  private constructor(
    private readonly server: Server,
    private readonly target: NetConnectOpts,
  ) {
    server.on('connection', (near) => this.accept(near));
  }

  static async open(target: NetConnectOpts): Promise<Link> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return new Link(server, target);
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  /** Breaks open connections. New connections work. */
  async breakConnections(): Promise<void> {
    const closed = [...this.pairs].map(({ near }) => new Promise((resolve) => near.once('close', resolve)));
    for (const { near } of this.pairs) near.destroy();
    await Promise.all(closed);
  }

  /** Breaks open connections and new ones. */
  async refuse(): Promise<void> {
    this.fault = 'refuses';
    await this.breakConnections();
  }

  /** Lets nothing through and reports nothing, like a network that drops packets. */
  hang(): void {
    this.fault = 'hangs';
    for (const { near, far } of this.pairs) [near, far].forEach((socket) => socket?.pause());
  }

  /** The connections with these numbers, counted from 1, get no answer. The others do. */
  swallow(connections: readonly number[]): void {
    this.swallowed = connections;
  }

  /** Ends the disturbance: hanging connections continue, and those that came meanwhile are broken. */
  restore(): void {
    this.fault = 'none';
    for (const { near, far } of this.pairs) {
      if (!far) near.destroy();
      else [near, far].forEach((socket) => socket.resume());
    }
  }

  async close(): Promise<void> {
    await this.breakConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }

  private accept(near: Socket): void {
    if (this.fault === 'refuses') return void near.destroy();
    const swallowed = this.swallowed.includes(++this.accepted);
    const far = this.fault === 'hangs' || swallowed ? null : connect(this.target);
    const pair = { near, far };
    this.pairs.add(pair);
    near.setNoDelay(true);
    far?.setNoDelay(true);
    near.on('error', () => near.destroy());
    near.on('close', () => {
      this.pairs.delete(pair);
      far?.destroy();
    });
    if (!far) return;
    far.on('error', () => near.destroy());
    far.on('close', () => near.destroy());
    near.pipe(far).pipe(near);
  }
}
