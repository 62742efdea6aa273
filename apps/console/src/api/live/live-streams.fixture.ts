import type { FastifyReply } from 'fastify';
import { EventEmitter } from 'node:events';
import type { AccessGuard } from '../../access/access.guard';
import type { CallerRequest } from '../../access/allow';
import { LiveStreams } from './live-streams';

export const ACCESS = { operator: 'books.check' } as const;
export const settled = () => jest.advanceTimersByTimeAsync(0);

/** The events of a stream, each with the time at which it was sent. */
export class Sent extends EventEmitter {
  readonly events: { atMs: number; value: unknown }[] = [];
  readonly others: string[] = [];
  isEnded = false;
  destroyed = false;
  /** Bytes that were written and not sent yet. */
  writableLength = 0;

  /** The browser is gone, as Node says it: once. */
  leave(): void {
    this.destroyed = true;
    this.emit('close');
  }

  writeHead(): void {}

  write(text: string): void {
    if (text.startsWith('data: ')) this.events.push({ atMs: Date.now(), value: JSON.parse(text.slice(6)) });
    else this.others.push(text);
  }

  end(): void {
    this.isEnded = true;
  }

  destroy(): void {
    this.destroyed = true;
    this.emit('close');
  }
}

// The clock of these tests is not that of the machine, also where promises wait for it.
jest.mock('node:timers/promises', () => ({
  setTimeout: (ms: number, _: unknown, { signal }: { signal: AbortSignal }) =>
    new Promise<void>((resolve, reject) => {
      const timer = setTimeout(resolve, ms);
      signal.addEventListener('abort', () => {
        clearTimeout(timer);
        reject(signal.reason as Error);
      });
    }),
}));

/** Time passes only when the test says so. */
export function useTestClock(): void {
  beforeEach(() => jest.useFakeTimers());
  afterEach(() => jest.useRealTimers());
}

export const requestOf = (userId: string) => ({ consoleCaller: { userId } }) as CallerRequest;

export type Check = (request: CallerRequest) => Promise<void>;
export const streamsWith = (check: Check) => new LiveStreams({ check } as unknown as AccessGuard);

export function open(
  read: () => Promise<unknown>,
  check: Check = () => Promise.resolve(),
  { streams = streamsWith(check), person = 'a person', name = 'one' } = {},
) {
  const raw = new Sent();
  const reply = { raw, hijack: () => {}, getHeaders: () => ({}) } as unknown as FastifyReply;
  const done = streams.send({ request: requestOf(person), reply }, { access: ACCESS, name, read });
  return { raw, streams, done };
}

export const after = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** What a viewer has seen. */
export const valuesOf = ({ raw }: { raw: Sent }): unknown[] => raw.events.map(({ value }) => value);
