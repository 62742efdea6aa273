import { withTimeout } from '../timing';

const ANSWER_TIMEOUT_MS = 3_000;

/** What the primary process and its workers ask each other. Questions of the version of one program: no envelope. */
export type Question = 'metrics' | 'readiness';
export type Answers = Partial<Record<Question, () => Promise<unknown>>>;

/** `process` in a worker, the `Worker` in the primary process. */
export interface Peer {
  send?(message: object): unknown;
  on(event: 'message', listener: (message: unknown) => void): unknown;
}

type Message =
  | { tollgate: 'ask'; id: number; question: Question }
  | { tollgate: 'answer'; id: number; answer: unknown }
  | { tollgate: 'serving' };

/**
 * Questions and answers over Node's IPC, in both directions. A question without an answer rejects after
 * ANSWER_TIMEOUT_MS.
 */
export class Channel {
  private lastId = 0;
  private readonly open = new Map<number, (answer: unknown) => void>();
  /** Called when the worker serves. */
  onServing: () => void = () => {};

  constructor(
    private readonly peer: Peer,
    private readonly answers: Answers,
  ) {
    peer.on('message', (message) => void this.take(message as Partial<Message> | null));
  }

  /** Tells the primary process that this worker serves. */
  tellServing(): void {
    this.send({ tollgate: 'serving' });
  }

  async ask(question: Question): Promise<unknown> {
    const id = (this.lastId += 1);
    const answered = new Promise<unknown>((resolve) => this.open.set(id, resolve));
    try {
      this.send({ tollgate: 'ask', id, question });
      return await withTimeout(ANSWER_TIMEOUT_MS, answered);
    } finally {
      this.open.delete(id);
    }
  }

  /** Other libraries use the same IPC, so other messages are ignored. An answer that fails is left to the timeout. */
  private async take(message: Partial<Message> | null): Promise<void> {
    if (message?.tollgate === 'serving') this.onServing();
    else if (message?.tollgate === 'answer') this.open.get(message.id!)?.(message.answer);
    else if (message?.tollgate === 'ask') {
      const answer = await this.answers[message.question!]?.().catch(() => undefined);
      if (answer !== undefined) this.send({ tollgate: 'answer', id: message.id!, answer });
    }
  }

  private send(message: Message): void {
    this.peer.send?.(message);
  }
}
