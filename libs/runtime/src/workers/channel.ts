import { logger } from '../logging/logging';
import { withTimeout } from '../timing';

const ANSWER_TIMEOUT_MS = 3_000;

/**
 * The questions that the primary process and its workers ask each other. They run the same version of a program, so
 * there is no envelope. `setup`: what a worker needs for its start. `request`: one between services, where the primary
 * process answers them.
 */
export type Question = 'metrics' | 'readiness' | 'setup' | 'request';
export type Answers = Partial<Record<Question, (data: unknown) => Promise<unknown>>>;

/** `process` in a worker, the `Worker` in the primary process. */
export interface Peer {
  send?(message: object, handle: undefined, options: undefined, sent: (error: Error | null) => void): unknown;
  on(event: 'message', listener: (message: unknown) => void): unknown;
}

type Message =
  | { tollgate: 'ask'; id: number; question: Question; data: unknown }
  | { tollgate: 'answer'; id: number; answer: unknown }
  | { tollgate: 'serving'; told: unknown }
  | { tollgate: 'alive' };

/**
 * Questions and answers over Node's IPC as JSON, in both directions. A question without an answer rejects after
 * ANSWER_TIMEOUT_MS, or the time that the caller sets.
 */
export class Channel {
  private lastId = 0;
  private readonly open = new Map<number, (answer: unknown) => void>();
  /** Called when the worker serves, with what it reports. */
  onServing: (told: unknown) => void = () => {};
  /** Called at each heartbeat of the worker. */
  onAlive: () => void = () => {};

  constructor(
    private readonly peer: Peer,
    private readonly answers: Answers,
  ) {
    peer.on('message', (message) => void this.take(message as Partial<Message> | null));
  }

  /** Tells the primary process that this worker serves. */
  tellServing(told?: unknown): void {
    this.send({ tollgate: 'serving', told });
  }

  /** Tells the primary process that the event loop of this worker runs. */
  tellAlive(): void {
    this.send({ tollgate: 'alive' });
  }

  async ask(question: Question, data?: unknown, timeoutMs = ANSWER_TIMEOUT_MS): Promise<unknown> {
    const id = (this.lastId += 1);
    const answered = new Promise<unknown>((resolve) => this.open.set(id, resolve));
    try {
      this.send({ tollgate: 'ask', id, question, data });
      return await withTimeout(timeoutMs, answered);
    } finally {
      this.open.delete(id);
    }
  }

  /** Other libraries use the same IPC, so other messages are ignored. An answer that fails is left to the timeout. */
  private async take(message: Partial<Message> | null): Promise<void> {
    if (message?.tollgate === 'serving') this.onServing(message.told);
    else if (message?.tollgate === 'alive') this.onAlive();
    else if (message?.tollgate === 'answer') this.open.get(message.id!)?.(message.answer);
    else if (message?.tollgate === 'ask') {
      const { question } = message;
      const answer = await this.answers[question!]?.(message.data).catch((error: unknown) =>
        logger('workers').error({ err: error, question }, 'a question of another process could not be answered'),
      );
      if (answer !== undefined) this.send({ tollgate: 'answer', id: message.id!, answer });
    }
  }

  /**
   * Without a callback, Node throws when the peer has just ended. Its question needs no answer, and ours times out.
   */
  private send(message: Message): void {
    this.peer.send?.(message, undefined, undefined, () => {});
  }
}
