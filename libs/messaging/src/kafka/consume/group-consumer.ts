import { backoffMs, delayUntilAborted, logCapped, logger } from '@tollgate/runtime';
import type { EachBatchPayload } from 'kafkajs';
import { deadMessages, failedBatches, forgedMessages, handledMessages, messageAge } from '../../message-metrics';
import { BATCHING_DELAY_MS } from '../../messages';
import type { KafkaConnection } from '../client/connection';
import { toRecord } from './dead-letters';
import type { Publisher } from '../publish/publisher';
import { RecordReader, type Batch, type ConsumedGroup, type Quarantined } from './record-reader';
import type { RightMissingError } from '../client/rights';
import type { Signatures } from '../sign/signatures';
import { SupervisedConsumer } from '../client/supervised-consumer';
import type { Names } from '../admin/topic-plan';

/** From the answer of a fetch that left no messages at the broker to the next fetch. */
const FETCH_INTERVAL_MS = 2 * BATCHING_DELAY_MS;
const RETRY_BASE_MS = 50;
const MAX_RETRY_MS = 5_000;
/** The interval of heartbeats to the group. A rebalance is noticed after this time and a fetch, at most. */
const HEARTBEAT_MS = 500;
/**
 * How long a rebalance waits for a member whose handler is still running. After that the batch is redelivered to
 * another process.
 */
const REBALANCE_TIMEOUT_MS = 30_000;

export interface ConsumerTuning {
  /**
   * A member that is silent for this time leaves its group. Limits the pause after a process died. Brokers allow less
   * than 6 s only if configured.
   */
  sessionTimeoutMs: number;
  /** The maximum number of partitions whose batches are handled at the same time. */
  concurrentPartitions: number;
}

/**
 * Consumes one group of one topic. For each partition, in order:
 *
 *   fetch ─▶ batch (≤ MAX_BATCH_MESSAGES) ─▶ 1. quarantine ─▶ 2. handler ─▶ 3. commit the offset
 *     ▲       ▲                                   │ failed        │ failed         │
 *     │       └────────── next batch ◀────────────┼───────────────┼────────────────┘
 *     └── backoff, partition paused ◀─────────────┴───────────────┘
 *
 * A batch is whole records, because offsets count records. Step 1 takes forged and unreadable messages out of it.
 *
 * While a handler runs, heartbeats go to the group. A rebalance waits until the handler has returned
 * (REBALANCE_TIMEOUT_MS at most), so a partition moves between batches. A paused partition delays no other one. A
 * process that has lost a partition cannot commit for it: the broker refuses its old generation.
 */
export class GroupConsumer {
  private readonly consumer: SupervisedConsumer;
  private readonly reader: RecordReader;
  private readonly attempts = new Map<number, number>();
  private readonly retries = new Map<number, NodeJS.Timeout>();
  /** The last quarantined offset by partition. A redelivered batch does not quarantine its messages again. */
  private readonly quarantinedUntil = new Map<number, bigint>();
  /** The offset behind the last one that was committed here, by partition. */
  private readonly committed = new Map<number, bigint>();
  private inHand = 0;
  /** The time of the last fetch, by `performance.now()`. */
  private fetchedAtMs = -Infinity;
  private readonly stopped = new AbortController();

  constructor(
    connection: KafkaConnection,
    private readonly consumed: ConsumedGroup,
    private readonly names: Names,
    private readonly publisher: Publisher,
    signatures: Signatures,
    tuning: ConsumerTuning,
  ) {
    const { topic, group } = consumed;
    this.reader = new RecordReader(consumed, names.topic(topic), signatures);
    this.consumer = new SupervisedConsumer({
      connection,
      topic: names.topic(topic),
      fromBeginning: true,
      config: () => ({
        groupId: names.group(topic, group),
        sessionTimeout: tuning.sessionTimeoutMs,
        heartbeatInterval: HEARTBEAT_MS,
        rebalanceTimeout: REBALANCE_TIMEOUT_MS,
      }),
      onFetch: () => (this.fetchedAtMs = performance.now()),
      onUndecoded: () => failedBatches.inc({ topic, group }),
      busy: () => this.inHand > 0,
      run: () => {
        this.forgetRetries();
        return {
          autoCommit: false,
          eachBatchAutoResolve: false,
          partitionsConsumedConcurrently: tuning.concurrentPartitions,
          eachBatch: (payload) => this.take(payload),
        };
      },
    });
  }

  start(): void {
    this.consumer.start();
  }

  async stop(): Promise<void> {
    this.stopped.abort();
    this.forgetRetries();
    await this.consumer.stop();
    this.forgetRetries();
  }

  /** The right that the user lacks for consuming. */
  get lack(): RightMissingError | undefined {
    return this.consumer.lack;
  }

  cut(): void {
    this.consumer.cut();
  }

  private async take(payload: EachBatchPayload): Promise<void> {
    const { batch, resolveOffset, heartbeat, commitOffsetsIfNecessary, isRunning, pause } = payload;
    const { partition } = batch;
    for (const part of this.reader.batches(batch.messages, partition)) {
      if (!isRunning()) return;
      // Rejects when the group rebalances. Unresolved messages are fetched again by the partition's next owner.
      await heartbeat();
      this.noticeNewOffsets(partition, BigInt(part.firstOffset));
      if (!(await this.handle(part, partition, heartbeat))) {
        this.comeAgain(partition, pause());
        return;
      }
      const last = part.lastOffset;
      resolveOffset(last);
      // Not `consumer.commitOffsets`, which does nothing once the consumer is stopping.
      const next = BigInt(last) + 1n;
      const partitions = [{ partition, offset: String(next) }];
      await commitOffsetsIfNecessary({ topics: [{ topic: batch.topic, partitions }] });
      this.committed.set(partition, next);
    }
    // The next fetch follows this call. Counted from the last one, so that partitions that are handled one after the
    // other do not wait one after the other.
    const waitMs = this.fetchedAtMs + FETCH_INTERVAL_MS - performance.now();
    if (BigInt(batch.offsetLag()) <= 0n && waitMs > 0) await delayUntilAborted(waitMs, this.stopped.signal);
  }

  /**
   * These offsets are before the committed one: the topic was recreated, or the group was reset. The messages that have
   * them now were not quarantined.
   */
  private noticeNewOffsets(partition: number, first: bigint): void {
    if (first >= (this.committed.get(partition) ?? 0n)) return;
    this.committed.set(partition, first);
    this.quarantinedUntil.delete(partition);
  }

  /** False: the batch must be redelivered. */
  private async handle(batch: Batch, partition: number, heartbeat: () => Promise<void>): Promise<boolean> {
    const { topic, group, handler } = this.consumed;
    const beating = setInterval(() => {
      // Its failure is noticed and acted upon when the batch is done.
      heartbeat().catch((error: unknown) => this.log().debug({ err: error }, 'heartbeat'));
    }, HEARTBEAT_MS);
    this.inHand++;
    try {
      if (batch.dead.length > 0) await this.quarantine(batch.dead, partition);
      if (batch.messages.length > 0) {
        // The publisher's clock may be ahead of this one.
        messageAge.observe({ topic, group }, Math.max(0, Date.now() - batch.oldestMs) / 1000);
        await handler(batch.messages);
        handledMessages.inc({ topic, group }, batch.messages.length);
      }
      this.attempts.delete(partition);
      return true;
    } catch (error) {
      failedBatches.inc({ topic, group });
      this.log().error(
        { err: error, partition, count: batch.messages.length },
        'a batch failed and will be redelivered',
      );
      return false;
    } finally {
      this.inHand--;
      clearInterval(beating);
    }
  }

  /** The unresolved batch is the next to be fetched from the partition once that is resumed. */
  private comeAgain(partition: number, resume: () => void): void {
    const attempt = this.attempts.get(partition) ?? 0;
    this.attempts.set(partition, attempt + 1);
    clearTimeout(this.retries.get(partition));
    const timer = setTimeout(resume, backoffMs(attempt, RETRY_BASE_MS, MAX_RETRY_MS));
    this.retries.set(partition, timer);
  }

  private forgetRetries(): void {
    for (const timer of this.retries.values()) clearTimeout(timer);
    this.retries.clear();
  }

  private async quarantine(dead: Quarantined[], partition: number): Promise<void> {
    const { topic, group } = this.consumed;
    const until = this.quarantinedUntil.get(partition) ?? -1n;
    const fresh = dead.filter(({ letter }) => BigInt(letter.offset) > until);
    await this.publisher.send({ topic: this.names.dead(topic), messages: fresh.map(({ letter }) => toRecord(letter)) });
    this.quarantinedUntil.set(partition, BigInt(dead.at(-1)!.letter.offset));
    deadMessages.inc({ topic, group }, fresh.length);
    for (const { letter, forged } of fresh) {
      const { offset, index, reason } = letter;
      if (forged) forgedMessages.inc({ topic, group });
      const message = forged ? 'a forged message was quarantined' : 'an unreadable message was quarantined';
      logCapped(this.log(), 'error', { partition, offset, index, reason }, message);
    }
  }

  private log() {
    return logger('messaging').child({ topic: this.consumed.topic, group: this.consumed.group });
  }
}
