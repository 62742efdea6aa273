import { ask } from './ask';
import { imageOf } from './images';
import { TestContainer, useContainer, type ContainerSpec } from './test-container';

export interface RedisOptions {
  /** Arguments of redis-server that follow the defaults, such as `--requirepass`. */
  args?: string[];
  /** The files that `args` names: path in the container to content. */
  files?: Record<string, string>;
}

/** A real Redis 8. It keeps its data through stop, kill and start. `exec(['redis-cli', …])` bypasses the clients. */
export class RedisServer extends TestContainer {
  get url(): string {
    return `redis://127.0.0.1:${this.port}`;
  }
}

/** Starts a Redis for the calling test file. */
export function useRedis(options: RedisOptions = {}): RedisServer {
  return useContainer(
    new RedisServer(([port = 0]) => ({
      ...redisNode(port, ['--appendonly', 'yes', ...(options.args ?? [])]),
      ...(options.files ? { files: options.files } : {}),
      ports: [port],
    })),
  );
}

/** The spec of a Redis that listens on `port` in its own network. */
export function redisNode(port: number, args: string[]): ContainerSpec {
  return {
    image: imageOf('REDIS'),
    command: ['redis-server', '--port', String(port), '--save', '', ...args],
    ready: () => answers(port),
  };
}

/**
 * Ready: Redis answers PONG or asks for a password. A server that loads its data answers LOADING. Docker's proxy
 * closes connections while no server listens.
 */
async function answers(port: number): Promise<void> {
  const answer = String(await ask(port, 'PING\r\n', (bytes) => bytes.includes('\r\n')));
  if (!/^\+PONG|^-NOAUTH|^-NOPERM/.test(answer)) throw new Error(`Redis answers ${answer}`);
}

/**
 * Returns the text that a Redis at a port of 127.0.0.1 answers to an inline command, such as `INFO replication`. Cheap
 * enough to ask again and again: a command in a container takes 55 ms of processor time.
 */
export async function redisText(port: number, command: string): Promise<string> {
  const answer = String(await ask(port, `${command}\r\n`, isWhole));
  if (!answer.startsWith('$')) throw new Error(`Redis answers ${answer}`);
  return answer.slice(answer.indexOf('\r\n') + 2, -2);
}

/** A text (`$<bytes>\r\n<text>\r\n`), or a line for anything else. */
function isWhole(answer: Buffer): boolean {
  const end = answer.indexOf('\r\n') + 2;
  if (end < 2) return false;
  const [, bytes] = /^\$(\d+)/.exec(answer.toString('latin1', 0, end)) ?? [];
  return bytes === undefined || answer.length >= end + Number(bytes) + 2;
}
