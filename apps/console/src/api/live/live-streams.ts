import { Injectable } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import type { OutgoingHttpHeaders } from 'node:http';
import { AccessGuard } from '../../access/access.guard';
import type { Access, CallerRequest } from '../../access/allow';
import { publicError } from '../../http/envelope';
import { ConsoleError } from '../../http/errors';
import { type Following, type Look, SharedLooks } from './shared-looks';

/**
 * A stream whose numbers do not change says this often that they are still true. The page takes a stream that says
 * nothing for longer as lost (`web/src/backend/live-source.ts`), and no proxy ends a quiet one.
 */
const QUIET_MS = 4_000;
/** An event, because browsers show no comment to the page. */
const UNCHANGED = 'event: unchanged\ndata: {}\n\n';
/** A stream ends after this many failed looks in a row. The page then asks, and shows what is wrong. */
const MAX_FAILED_LOOKS = 2;
/**
 * The most bytes that a viewer has not read. Beyond that the stream is cut, and the page opens another one when it
 * reads again.
 */
const MAX_UNREAD_BYTES = 256 * 1024;
/** The most streams of this process, and of a person in it. A page without a stream polls. */
const MAX_STREAMS = 500;
const MAX_STREAMS_OF_PERSON = 20;
const EVENT_STREAM = { 'content-type': 'text/event-stream; charset=utf-8', 'x-accel-buffering': 'no' };

/** What a stream shows. */
interface Shown {
  access: Exclude<Access, 'anybody'>;
  /** Streams of the same name share their looks, so it names all that the answer of `read` depends on. */
  name: string;
  read: () => Promise<unknown>;
}

/**
 * Numbers that change while a page is open, as server-sent events. Streams that show the same share one look at the
 * services. For each stream, each look asks whether its person may still see it, so a stream ends with its session or
 * role.
 */
@Injectable()
export class LiveStreams {
  /** Each with its person. */
  private readonly open = new Map<AbortController, string>();
  private readonly looks = new SharedLooks();
  private closed = false;

  constructor(private readonly guard: AccessGuard) {}

  /** The streams that are open or in their first look. */
  get count(): number {
    return this.open.size;
  }

  /** Sends what `read` returns now, and again whenever it has changed. */
  async send(
    { request, reply }: { request: CallerRequest; reply: FastifyReply },
    { access, name, read }: Shown,
  ): Promise<void> {
    const { userId } = request.consoleCaller!;
    const own = [...this.open.values()].filter((person) => person === userId).length;
    if (this.closed || this.open.size >= MAX_STREAMS || own >= MAX_STREAMS_OF_PERSON)
      throw new ConsoleError('unavailable');
    const ended = new AbortController();
    // Before the first look: a browser that leaves during it says so only once.
    reply.raw.on('close', () => ended.abort());
    this.open.set(ended, userId);
    const following = this.looks.follow(name, read);
    try {
      const look = following.newest;
      const first = await look.text;
      reply.hijack();
      if (reply.raw.destroyed) return;
      reply.raw.writeHead(200, { ...(reply.getHeaders() as OutgoingHttpHeaders), ...EVENT_STREAM });
      reply.raw.write(`data: ${first}\n\n`);
      await this.follow({ request, reply }, { access, following, look, first, signal: ended.signal });
      reply.raw.end();
    } finally {
      following.leave();
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
      following,
      look: firstLook,
      first,
      signal,
    }: Pick<Shown, 'access'> & { following: Following; look: Look; first: string; signal: AbortSignal },
  ): Promise<void> {
    let [sent, sentAtMs, failed] = [first, Date.now(), 0];
    for (let look: Look | null = firstLook; (look = await following.after(look, signal)) !== null;) {
      try {
        await this.guard.check(request, access);
        const now = await look.text;
        // The browser left, or the process stops.
        if (signal.aborted) return;
        failed = 0;
        if (reply.raw.writableLength > MAX_UNREAD_BYTES) return void reply.raw.destroy();
        if (now !== sent) {
          reply.raw.write(`data: ${now}\n\n`);
          [sent, sentAtMs] = [now, Date.now()];
        } else if (Date.now() - sentAtMs >= QUIET_MS) {
          reply.raw.write(UNCHANGED);
          sentAtMs = Date.now();
        }
      } catch (error) {
        // A service that is down for a moment changes no number. Everything else ends the stream, and the page asks.
        if (publicError(error).code !== 'unavailable' || ++failed >= MAX_FAILED_LOOKS) return;
      }
    }
  }
}
