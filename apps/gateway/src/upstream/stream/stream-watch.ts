import { PlaceList } from '@tollgate/runtime';

const TICK_MS = 1_000;
/** The client of a stream gets a comment when nothing was written to it for this long. */
const KEEP_ALIVE_AFTER_MS = 10_000;
/** A client that reads nothing for this long is disconnected, which frees its place and its hold. */
export const MAX_STALL_MS = 120_000;

/** A stream that can be watched. */
export interface WatchedStream {
  /** Under the watch. Null: not yet. */
  watched: Watched | null;
  /** How often it has written to its client. */
  readonly writes: number;
  /** Since when its client reads nothing, by `Date.now()`. Null: it reads. */
  stalledSinceMs: number | null;
  /** Writes a comment. */
  keepAlive(): void;
}

/** The client of a stream that can be watched. */
export interface WatchedClient {
  /** An earlier answer of its connection is not complete, so it cannot read this one yet. */
  readonly isQueued: boolean;
  /** Closes its connection. */
  destroy(): void;
}

/** A stream under watch. */
export interface Watched {
  readonly stream: WatchedStream;
  /** When it was added, or last seen to have written, by `Date.now()`. */
  sinceMs: number;
  /** How often the stream had written then. */
  writes: number;
  readonly client: WatchedClient;
  place: number;
}

/** Watches all streams of the process with one timer. A timer per stream would cost 8 µs a request. */
export class StreamWatch {
  private readonly streams = new PlaceList<Watched>();
  private timer: NodeJS.Timeout | null = null;

  add(stream: WatchedStream, nowMs: number, client: WatchedClient): void {
    const watched: Watched = { stream, sinceMs: nowMs, writes: stream.writes, client, place: -1 };
    watched.place = this.streams.add(watched);
    stream.watched = watched;
    this.timer ??= setInterval(() => this.tick(Date.now()), TICK_MS).unref();
  }

  remove({ watched }: WatchedStream): void {
    if (watched) this.streams.remove(watched, watched.place);
  }

  tick(nowMs: number): void {
    for (const watched of this.streams) {
      const { stream, client } = watched;
      if (stream.stalledSinceMs !== null && client.isQueued) stream.stalledSinceMs = nowMs;
      else if (stream.stalledSinceMs !== null && nowMs - stream.stalledSinceMs > MAX_STALL_MS) client.destroy();
      else if (stream.writes !== watched.writes) noteWrite(watched, nowMs);
      else if (nowMs - watched.sinceMs >= KEEP_ALIVE_AFTER_MS) {
        stream.keepAlive();
        noteWrite(watched, nowMs);
      }
    }
    if (this.streams.size > 0 || !this.timer) return;
    clearInterval(this.timer);
    this.timer = null;
  }

  stop(): void {
    if (this.timer) clearInterval(this.timer);
    this.timer = null;
  }
}

/** The stream has written since the last tick. Comparing counts spares each chunk a reading of the clock. */
function noteWrite(watched: Watched, nowMs: number): void {
  watched.writes = watched.stream.writes;
  watched.sinceMs = nowMs;
}
