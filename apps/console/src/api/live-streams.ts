import { Injectable } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { setTimeout as sleep } from 'node:timers/promises';
import { AccessGuard } from '../access/access.guard';
import type { Access, CallerRequest } from '../access/allow';
import { publicError } from '../http/envelope';
import { ConsoleError } from '../http/errors';

/**
 * From one look at the services to the next. A number is as old as that and the time of a look: two seconds at most.
 */
const LOOK_EVERY_MS = 1_000;
/** After a slow look. */
const MIN_PAUSE_MS = 200;
/** A line that keeps proxies from ending a quiet stream. */
const QUIET_MS = 15_000;
/** Of this process, and of a person in it. A page without a stream asks by itself. */
const MAX_STREAMS = 500;
const MAX_STREAMS_OF_PERSON = 20;
const EVENT_STREAM = { 'content-type': 'text/event-stream; charset=utf-8', 'x-accel-buffering': 'no' };

/**
 * Numbers that change while a page is open, as server-sent events. Each look first asks whether the person may still
 * see them, so a stream ends with its session or role.
 */
@Injectable()
export class LiveStreams {
  /** Each with its person. */
  private readonly open = new Map<AbortController, string>();
  private closed = false;

  constructor(private readonly guard: AccessGuard) {}

  /** Those that are open, or that have their first look. */
  get count(): number {
    return this.open.size;
  }

  /** Sends what `read` returns now, and again whenever it has changed. */
  async send(
    { request, reply }: { request: CallerRequest; reply: FastifyReply },
    { access, read }: { access: Exclude<Access, 'anybody'>; read: () => Promise<unknown> },
  ): Promise<void> {
    const { userId } = request.consoleCaller!;
    const own = [...this.open.values()].filter((person) => person === userId).length;
    if (this.closed || this.open.size >= MAX_STREAMS || own >= MAX_STREAMS_OF_PERSON)
      throw new ConsoleError('unavailable');
    const startedAtMs = performance.now();
    const ended = new AbortController();
    // Before the first look: a browser that leaves during it says so only once.
    reply.raw.on('close', () => ended.abort());
    this.open.set(ended, userId);
    try {
      const first = JSON.stringify(await read());
      reply.hijack();
      if (reply.raw.destroyed) return;
      reply.raw.writeHead(200, { ...stringHeaders(reply), ...EVENT_STREAM });
      reply.raw.write(`data: ${first}\n\n`);
      await this.follow({ request, reply }, { access, read, first, startedAtMs, signal: ended.signal });
      reply.raw.end();
    } finally {
      this.open.delete(ended);
    }
  }

  /** Pages then ask by themselves, and open a stream at the next process. */
  close(): void {
    this.closed = true;
    for (const ended of this.open.keys()) ended.abort();
  }

  private async follow(
    { request, reply }: { request: CallerRequest; reply: FastifyReply },
    {
      access,
      read,
      first,
      startedAtMs,
      signal,
    }: {
      access: Exclude<Access, 'anybody'>;
      read: () => Promise<unknown>;
      first: string;
      startedAtMs: number;
      signal: AbortSignal;
    },
  ): Promise<void> {
    let [sent, sentAtMs] = [first, Date.now()];
    let lookedAtMs = startedAtMs;
    while (!signal.aborted) {
      const pauseMs = Math.max(MIN_PAUSE_MS, lookedAtMs + LOOK_EVERY_MS - performance.now());
      await sleep(pauseMs, undefined, { signal }).catch(() => {});
      if (signal.aborted) return;
      lookedAtMs = performance.now();
      try {
        await this.guard.check(request, access);
        const now = JSON.stringify(await read());
        if (now !== sent) {
          reply.raw.write(`data: ${now}\n\n`);
          [sent, sentAtMs] = [now, Date.now()];
        } else if (Date.now() - sentAtMs >= QUIET_MS) {
          reply.raw.write(':\n\n');
          sentAtMs = Date.now();
        }
      } catch (error) {
        // A service that is away for a moment changes no number. Everything else ends the stream, and the page asks.
        if (publicError(error).code !== 'unavailable') return;
      }
    }
  }
}

function stringHeaders(reply: FastifyReply): Record<string, string> {
  return Object.fromEntries(Object.entries(reply.getHeaders()).map(([name, value]) => [name, String(value)]));
}
