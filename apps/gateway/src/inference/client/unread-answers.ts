import type { ServerResponse } from 'node:http';
import { Injectable } from '@nestjs/common';
import { PlaceList } from '@tollgate/runtime';
import { BodyMemory } from '../../admit/body-memory';
import type { MemoryBudget, MemoryOwner } from '../../admit/memory-budget';
import { MAX_STALL_MS } from '../../upstream/stream/stream-watch';

const TICK_MS = 1_000;
/**
 * A longer answer is written in pieces of this length, because only a whole piece shows that the client reads. Not less
 * than Node's buffer of a response: after a shorter piece there would be no `drain`.
 */
const PIECE_BYTES = 128 * 1024;

/**
 * The ends of answers that their clients have not read yet. A client that reads nothing for as long as a stream may
 * stall is disconnected. Once a long answer was unread at two looks, it counts against the memory of its key until its
 * last byte is read. Answers that the socket takes at once cost nothing here.
 */
@Injectable()
export class UnreadAnswers {
  private readonly answers = new PlaceList<UnreadAnswer>();
  private timer: NodeJS.Timeout | null = null;

  constructor(private readonly memory: BodyMemory) {}

  /**
   * Ends the response with these bytes, at the pace of the client.
   * @param last a string has one character a byte
   */
  end(response: ServerResponse, last: Buffer | string, owner: MemoryOwner | null): void {
    // After a piece of an answer to HEAD there would be no `drain`: node:http sends none of it.
    if (last.length <= PIECE_BYTES || response.req.method === 'HEAD') {
      response.end(last, 'latin1');
      // Its socket may have taken all of it.
      if (response.writableLength > 0) this.add(new UnreadAnswer(response, null, null));
      return;
    }
    const bytes = typeof last === 'string' ? Buffer.from(last, 'latin1') : last;
    const answer = new UnreadAnswer(response, bytes, owner);
    response.on('drain', () => answer.goOn());
    this.add(answer);
    answer.goOn();
  }

  private add(answer: UnreadAnswer): void {
    const place = this.answers.add(answer);
    answer.response.once('close', () => {
      this.answers.remove(answer, place);
      answer.drop(this.memory.answers);
    });
    this.timer ??= setInterval(() => this.tick(Date.now()), TICK_MS).unref();
  }

  private tick(nowMs: number): void {
    for (const answer of this.answers) {
      answer.count(this.memory.answers);
      if (answer.stalledForMs(nowMs) > MAX_STALL_MS) answer.response.destroy();
    }
    if (this.answers.size > 0 || !this.timer) return;
    clearInterval(this.timer);
    this.timer = null;
  }
}

/** The end of one answer. */
class UnreadAnswer {
  private seenBytes = 0;
  /** Since when the client has read nothing, by `Date.now()`. Null: not looked at yet. */
  private sinceMs: number | null = null;
  private readonly bytes: number;
  private isCounted = false;

  /**
   * @param rest not written yet. Null: nothing, and the response has ended
   * @param owner null: it does not count against the memory of anybody
   */
  constructor(
    readonly response: ServerResponse,
    private rest: Buffer | null,
    private readonly owner: MemoryOwner | null,
  ) {
    this.bytes = rest?.length ?? 0;
  }

  private get unreadBytes(): number {
    return this.response.writableLength + (this.rest?.length ?? 0);
  }

  /** Writes the next piece. `drain` follows it, unless it is the last one. */
  goOn(): void {
    const { rest, response } = this;
    if (rest === null) return;
    if (rest.length <= PIECE_BYTES) {
      this.rest = null;
      response.end(rest);
    } else {
      this.rest = rest.subarray(PIECE_BYTES);
      response.write(rest.subarray(0, PIECE_BYTES));
    }
  }

  stalledForMs(nowMs: number): number {
    const { unreadBytes } = this;
    // Without a socket, it waits for the answer of an earlier request of its connection.
    if (this.sinceMs === null || this.response.socket === null || unreadBytes !== this.seenBytes) {
      this.seenBytes = unreadBytes;
      this.sinceMs = nowMs;
    }
    return nowMs - this.sinceMs;
  }

  /** From its second look on it counts with all its bytes: they stay in memory until the last one is read. */
  count(memory: MemoryBudget): void {
    if (this.isCounted || this.sinceMs === null || this.owner === null) return;
    this.isCounted = true;
    memory.add(this.owner, this.bytes);
  }

  /** The response is closed. */
  drop(memory: MemoryBudget): void {
    this.rest = null;
    if (this.isCounted) memory.add(this.owner!, -this.bytes);
  }
}
