import { ask } from './ask';
import { imageOf } from './images';
import { TestContainer, useContainer, type ContainerSpec } from './test-container';

export interface RedisOptions {
  /** More arguments of redis-server, such as `--requirepass`, over the defaults. */
  args?: string[];
  /** Files that these name: path in the container to content. */
  files?: Record<string, string>;
}

/** A real Redis 8. Its data survive stop, kill and start. `exec(['redis-cli', …])` bypasses the clients. */
export class RedisServer extends TestContainer {
  get url(): string {
    return `redis://127.0.0.1:${this.port}`;
  }
}

/** A Redis for the calling test file. */
export function useRedis(options: RedisOptions = {}): RedisServer {
  return useContainer(
    new RedisServer(([port = 0]) => ({
      ...redisNode(port, ['--appendonly', 'yes', ...(options.args ?? [])]),
      ...(options.files ? { files: options.files } : {}),
      ports: [port],
    })),
  );
}

/** A Redis on this port of its own network. */
export function redisNode(port: number, args: string[]): ContainerSpec {
  return {
    image: imageOf('REDIS'),
    command: ['redis-server', '--port', String(port), '--save', '', ...args],
    ready: () => answers(port),
  };
}

/**
 * Loaded and willing: a server that loads its data says LOADING; one that asks for a password is up. A closed
 * connection says nothing: Docker's proxy closes them while nobody listens behind it yet.
 */
async function answers(port: number): Promise<void> {
  const answer = String(await ask(port, 'PING\r\n', (bytes) => bytes.includes('\r\n')));
  if (!/^\+PONG|^-NOAUTH|^-NOPERM/.test(answer)) throw new Error(`Redis says ${answer}`);
}
