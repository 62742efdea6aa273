import { eventually } from '@tollgate/testing';
import type { TestTenant } from '../e2e/fixtures';
import { ask, type Asked, type Outcome } from './client-request';
import { randomFrom } from './random';

/** A request begins so often, whatever became of those before it. */
const EVERY_MS = 25;
const STREAMED_SHARE = 0.4;
export const TOKENS_PER_SECOND = 40;
/** Beyond it none begins until some have ended: a hang must not exhaust this process. */
const MAX_RUNNING = 400;
const ANSWERS_TIMEOUT_MS = 60_000;

/** A steady load of streamed and plain chats of several tenants and keys, and the client's own list of what became of each. */
export class Load {
  /** In the order in which they ended. */
  readonly outcomes: Outcome[] = [];
  private readonly running = new Set<Promise<void>>();
  private readonly random: () => number;
  private timer: NodeJS.Timeout | undefined;
  private begun = 0;

  constructor(
    private readonly inferenceUrl: () => string,
    private readonly tenants: readonly TestTenant[],
    seed: number,
  ) {
    this.random = randomFrom(seed);
  }

  start(): void {
    this.timer ??= setInterval(() => this.begin(), EVERY_MS);
  }

  /** Begins no more, and waits for those that run. */
  async pause(): Promise<void> {
    clearInterval(this.timer);
    this.timer = undefined;
    await Promise.all(this.running);
  }

  /** Waits until so many more answers have arrived whole. */
  async answers(count: number): Promise<void> {
    const from = this.outcomes.length;
    await eventually(
      () => {
        const arrived = this.outcomes.slice(from).filter(({ failure }) => failure === null).length;
        if (arrived < count) throw new Error(`only ${arrived} of ${count} answers arrived`);
      },
      { timeoutMs: ANSWERS_TIMEOUT_MS },
    );
  }

  private begin(): void {
    if (this.running.size >= MAX_RUNNING) return;
    const asking = ask(this.inferenceUrl(), this.next())
      .then((outcome) => void this.outcomes.push(outcome))
      .finally(() => this.running.delete(asking));
    this.running.add(asking);
  }

  private next(): Asked {
    const { id, key } = this.tenants[Math.floor(this.random() * this.tenants.length)]!;
    const stream = this.random() < STREAMED_SHARE;
    const size = this.random();
    const messages = [{ role: 'user', content: `question ${this.begun++}` }];
    const simulator = stream
      ? { tokensPerSecond: TOKENS_PER_SECOND, answerTokens: 10 + Math.floor(size * 70) }
      : { firstTokenDelayMs: 10 + Math.floor(size * 140), answerTokens: 5 + Math.floor(size * 35) };
    return { tenantId: id, key, body: { stream, messages, simulator } };
  }
}
