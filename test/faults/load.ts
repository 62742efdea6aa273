import { eventually, Standstill } from '@tollgate/testing';
import type { TestTenant } from '../e2e/fixtures';
import { ask, type Asked, type Outcome } from './client-request';
import { randomFrom } from './random';

/** A request begins at this interval, independent of earlier ones. */
const EVERY_MS = 25;
const STREAMED_SHARE = 0.4;
const EMBEDDED_SHARE = 0.1;
export const TOKENS_PER_SECOND = 40;
/** No further request begins beyond this number, so that a hang does not exhaust this process. */
const MAX_RUNNING = 400;
const ANSWERS_TIMEOUT_MS = 60_000;

export interface Measured extends Outcome {
  /** How long this process stood still during the request. */
  stoodMs: number;
}

/**
 * A steady load of streamed and plain chats and of embeddings, from several tenants and keys, with the outcome of each
 * request as its client saw it.
 */
export class Load {
  /** The outcomes, in the order of their ends. */
  readonly outcomes: Measured[] = [];
  private readonly running = new Set<Promise<void>>();
  private readonly random: () => number;
  private timer: NodeJS.Timeout | undefined;
  private standstill: Standstill | undefined;
  private begun = 0;

  constructor(
    private readonly inferenceUrl: () => string,
    private readonly tenants: readonly TestTenant[],
    seed: number,
    private readonly everyMs = EVERY_MS,
  ) {
    this.random = randomFrom(seed);
  }

  start(): void {
    this.standstill ??= new Standstill();
    this.timer ??= setInterval(() => this.begin(), this.everyMs);
  }

  /** Begins no further request, and waits for the running ones. */
  async pause(): Promise<void> {
    clearInterval(this.timer);
    this.timer = undefined;
    await Promise.all(this.running);
    this.standstill?.end();
    this.standstill = undefined;
  }

  /** Waits for this many more complete answers. */
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

  /** Waits for as many more complete answers as the requests that begin within this time. */
  answersOf(ms: number): Promise<void> {
    return this.answers(Math.ceil(ms / this.everyMs));
  }

  private begin(): void {
    if (this.running.size >= MAX_RUNNING) return;
    const standstill = this.standstill!;
    const before = standstill.ms;
    const asking = ask(this.inferenceUrl(), this.next())
      .then((outcome) => void this.outcomes.push({ ...outcome, stoodMs: standstill.ms - before }))
      .finally(() => this.running.delete(asking));
    this.running.add(asking);
  }

  private next(): Asked {
    const { id: tenantId, keyId, key } = this.tenants[Math.floor(this.random() * this.tenants.length)]!;
    const kind = this.random();
    const size = this.random();
    const text = `question ${this.begun++}`;
    const asking = { tenantId, keyId, key };
    if (kind < EMBEDDED_SHARE)
      return { ...asking, kind: 'embeddings', tokens: 0, body: { model: 'sim-embed', input: text } };
    const chat = { model: 'sim', messages: [{ role: 'user', content: text }] };
    if (kind < EMBEDDED_SHARE + STREAMED_SHARE) {
      const tokens = 10 + Math.floor(size * 70);
      const simulator = { tokensPerSecond: TOKENS_PER_SECOND, answerTokens: tokens };
      return { ...asking, kind: 'stream', tokens, body: { ...chat, stream: true, simulator } };
    }
    const tokens = 5 + Math.floor(size * 35);
    const simulator = { firstTokenDelayMs: 10 + Math.floor(size * 140), answerTokens: tokens };
    return { ...asking, kind: 'plain', tokens, body: { ...chat, simulator } };
  }
}
