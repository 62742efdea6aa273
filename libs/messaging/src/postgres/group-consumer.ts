import { createHash } from 'node:crypto';
import type { Envelope, Topic, TopicDefinition } from '@tollgate/contracts';
import { backoffMs, logCapped, logger, WakeableDelay } from '@tollgate/runtime';
import { isObject, open } from '../envelope';
import { deadMessages, failedBatches, handledMessages, messageAge } from '../message-metrics';
import { BATCHING_DELAY_MS, MAX_BATCH_MESSAGES, type BatchHandler, type MessageValidator } from '../messages';
import type { ConsumerSession, DeadMessage, WaitingBatch } from './consumer-session';
import { NOT_A_BATCH, queueName } from './queues';

/** The poll interval without notifications. It finds lost notifications, and checks the connection. */
const IDLE_POLL_MS = 1_000;
/** How often a standby process tries to become the consumer. Limits the pause after a process died. */
const STANDBY_POLL_MS = 200;
/** How often messages of the former version are moved. Its processes may publish for as long as they run. */
const MOVE_FORMER_MS = 5_000;
const RETRY_BASE_MS = 50;
const MAX_RETRY_MS = 5_000;
const RECONNECT_BASE_MS = 50;
const MAX_RECONNECT_MS = 2_000;

export interface ConsumedGroup {
  topic: Topic;
  group: string;
  definition: TopicDefinition;
  handler: BatchHandler<unknown>;
  validate: MessageValidator | undefined;
}

/** The rows of one handler call. */
interface Batch {
  ids: string[];
  messages: unknown[];
  dead: DeadMessage[];
  /** The time of the oldest message, epoch milliseconds. */
  oldestMs: number;
}

/**
 * Consumes one group of one topic.
 *
 *   connecting ──session──▶ standby ──lock──▶ consuming: read → (quarantine → handle → acknowledge)* → read …
 *        ▲                     │                  │
 *        └──── session lost ───┴──────────────────┘
 *
 * `stop` finishes the batch in progress and releases the lock.
 *
 * Only the holder of the queue's lock consumes, one batch at a time and in order. This keeps the order for each key.
 * The lock belongs to the session. If the session is lost, a batch in progress is not acknowledged and no further batch
 * is read. The batch is redelivered here or in another process.
 */
export class GroupConsumer {
  readonly queue: string;
  private readonly wakeUp = new WakeableDelay();
  private readonly interrupt = new WakeableDelay();
  private isConsuming = false;
  private stopping = false;
  private done: Promise<void> = Promise.resolve();

  constructor(
    private readonly consumed: ConsumedGroup,
    private readonly openSession: () => Promise<ConsumerSession>,
  ) {
    this.queue = queueName(consumed.topic, consumed.group);
  }

  start(): void {
    this.done = this.run();
  }

  /** Whether this process is the consumer of the queue now. */
  get consuming(): boolean {
    return this.isConsuming;
  }

  /** New messages concern the consumer; a released queue concerns the standbys. */
  onNews(queue: string, released: boolean): void {
    if (queue === this.queue && released !== this.isConsuming) this.wakeUp.wake();
  }

  onSessionLost(): void {
    this.wakeUp.wake();
    this.interrupt.wake();
  }

  /** Resolves when the batch in progress is finished and acknowledged. */
  async stop(): Promise<void> {
    this.stopping = true;
    this.wakeUp.wake();
    this.interrupt.wake();
    await this.done;
  }

  private async run(): Promise<void> {
    for (let failures = 0; !this.stopping;) {
      let session: ConsumerSession | undefined;
      try {
        session = await this.openSession();
        this.isConsuming = await session.tryLock(this.queue);
        failures = 0;
        if (this.isConsuming) {
          await this.consume(session);
          if (!session.lost) await session.unlock(this.queue);
        } else {
          await this.wakeUp.wait(STANDBY_POLL_MS);
        }
      } catch (error) {
        // After any error the session's state is unknown. A new session starts from what is stored.
        session?.drop();
        if (this.stopping) return;
        this.log().warn({ err: error }, 'consuming failed; retrying');
        await this.interrupt.wait(backoffMs(failures++, RECONNECT_BASE_MS, MAX_RECONNECT_MS));
      } finally {
        this.isConsuming = false;
      }
    }
  }

  private async consume(session: ConsumerSession): Promise<void> {
    let movedAtMs = -Infinity;
    while (!this.stopping && !session.lost) {
      const readAtMs = performance.now();
      if (readAtMs - movedAtMs >= MOVE_FORMER_MS) {
        await session.moveFormer(this.queue);
        movedAtMs = readAtMs;
      }
      const { batches, more } = await session.read(this.queue);
      let messages = 0;
      for (const batch of this.batchesOf(batches)) {
        if (this.stopping || session.lost) return;
        // 1. Quarantine unreadable messages before the acknowledgement, with ids that make a repeat harmless.
        if (batch.dead.length > 0) await this.quarantine(session, batch.dead);
        // 2. Run the handler until it returns.
        if (batch.messages.length > 0 && !(await this.handle(session, batch))) return;
        // 3. Acknowledge: only now the batch is gone.
        await session.acknowledge(this.queue, batch.ids);
        messages += batch.messages.length;
      }
      if (more || messages >= MAX_BATCH_MESSAGES) continue;
      const waitMs = BATCHING_DELAY_MS - (performance.now() - readAtMs);
      if (batches.length > 0 && waitMs > 0) await this.interrupt.wait(waitMs);
      // Messages that came since the read were announced, which ends this wait.
      if (!this.stopping && !session.lost) await this.wakeUp.wait(IDLE_POLL_MS);
    }
  }

  /**
   * False: the batch was not handled and must not be acknowledged, because the session is lost, or the handler fails
   * during a stop.
   */
  private async handle(session: ConsumerSession, batch: Batch): Promise<boolean> {
    const { topic, group, handler } = this.consumed;
    for (let attempt = 0; ; attempt++) {
      // The publisher's clock may be ahead of this one.
      messageAge.observe({ topic, group }, Math.max(0, Date.now() - batch.oldestMs) / 1000);
      try {
        await handler(batch.messages);
        handledMessages.inc({ topic, group }, batch.messages.length);
        return !session.lost;
      } catch (error) {
        failedBatches.inc({ topic, group });
        this.log().error(
          { err: error, attempt, count: batch.messages.length },
          'a batch failed and will be redelivered',
        );
      }
      await this.interrupt.wait(backoffMs(attempt, RETRY_BASE_MS, MAX_RETRY_MS));
      if (this.stopping || session.lost) return false;
    }
  }

  private async quarantine(session: ConsumerSession, dead: Batch['dead']): Promise<void> {
    const { topic, group } = this.consumed;
    // Skips messages that are already there: an earlier process died between quarantine and acknowledgement.
    await session.quarantine(this.queue, dead);
    deadMessages.inc({ topic, group }, dead.length);
    for (const { id, reason } of dead)
      logCapped(this.log(), 'error', { id, reason }, 'an unreadable message was quarantined');
  }

  /** Whole rows, up to the limit of one handler call. */
  private *batchesOf(rows: readonly WaitingBatch[]): Generator<Batch> {
    let batch = emptyBatch();
    for (const { id, data } of rows) {
      const envelopes = messagesOf(data);
      const size = envelopes?.length ?? 0;
      if (batch.messages.length + size > MAX_BATCH_MESSAGES) {
        yield batch;
        batch = emptyBatch();
      }
      batch.ids.push(id);
      if (!envelopes) batch.dead.push({ id: deadId(id, 0), reason: NOT_A_BATCH, batch: id, index: null });
      envelopes?.forEach((envelope, index) => this.add(batch, id, index, envelope));
    }
    if (batch.ids.length > 0) yield batch;
  }

  private add(batch: Batch, rowId: string, index: number, envelope: unknown): void {
    const opened = open<unknown>(this.consumed.definition, envelope, this.consumed.validate);
    if ('reason' in opened) {
      batch.dead.push({ id: deadId(rowId, index), reason: opened.reason, batch: rowId, index });
    } else {
      batch.messages.push(opened.data);
      batch.oldestMs = Math.min(batch.oldestMs, Date.parse((envelope as Envelope).at) || batch.oldestMs);
    }
  }

  private log() {
    return logger('messaging').child({ topic: this.consumed.topic, group: this.consumed.group });
  }
}

const emptyBatch = (): Batch => ({ ids: [], messages: [], dead: [], oldestMs: Date.now() });

function messagesOf(data: unknown): unknown[] | undefined {
  const messages = isObject(data) ? data['messages'] : undefined;
  return Array.isArray(messages) && messages.length <= MAX_BATCH_MESSAGES ? messages : undefined;
}

/** The same id each time the message is quarantined: a UUID (version 8) of its position. */
function deadId(rowId: string, index: number): string {
  const hex = createHash('sha256').update(`${rowId}/${index}`).digest('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}
