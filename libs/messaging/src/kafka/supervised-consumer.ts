import { logger } from '@tollgate/runtime';
import type { Consumer, ConsumerConfig, ConsumerRunConfig } from 'kafkajs';
import { backoffMs } from '../signal';
import { createKafka, RETRY, Sockets, type KafkaConnection } from './connection';
import { withTimeout } from './with-timeout';

const RESTART_BASE_MS = 100;
const MAX_RESTART_MS = 2_000;
/** Batches whose handlers take longer than this after `stop` are abandoned: they come again. */
export const STOP_TIMEOUT_MS = 15_000;
/** A consumer that is not in its group has nothing in hand: it need not be waited for. */
const LEAVE_TIMEOUT_MS = 1_000;
/** A consumer that has shown no sign of life for so long, and has no batch in hand, hangs. Longer than any one request of it may take. */
const MAX_SILENCE_MS = 90_000;
const SILENCE_CHECK_MS = 5_000;
/** How long a fetch waits at the broker when there is nothing: bounds how late a pause, a rebalance or a stop is noticed, not how late a message comes. */
const FETCH_WAIT_MS = 250;

export interface ConsumerSettings {
  connection: KafkaConnection;
  topic: string;
  /** Where a group without offsets begins. */
  fromBeginning: boolean;
  /** Made anew for each consumer. */
  config(): ConsumerConfig;
  /** Made anew for each consumer. */
  run(): ConsumerRunConfig;
  /** Called at each joining of the group, before anything is fetched. */
  onJoin?: (consumer: Consumer) => void;
  /** Whether a batch is in a handler's hands. */
  busy?: () => boolean;
}

/**
 * A kafkajs consumer that is there until it is stopped. kafkajs goes on by itself after some failures and ends silently after others, so any failure that reaches here ends
 * the consumer, with its connections, and begins another one:
 *
 *   starting ──joined──▶ consuming ──crash, silence──▶ ended ──backoff──▶ starting …      stop: the batches in hand are finished, the group is left
 */
export class SupervisedConsumer {
  private sockets = new Sockets();
  private stopping = false;
  private groupId = '';
  private joined = false;
  private failures = 0;
  private silenceTimer: NodeJS.Timeout | undefined;
  private done: Promise<void> = Promise.resolve();
  private becomeReady: () => void = () => {};
  private tellStopped: () => void = () => {};
  private readonly stopped = new Promise<void>((resolve) => (this.tellStopped = resolve));
  /** Resolves when the first fetch has been answered: from then on, nothing new is missed. */
  readonly ready = new Promise<void>((resolve) => (this.becomeReady = resolve));

  constructor(private readonly settings: ConsumerSettings) {}

  start(): void {
    this.done = this.supervise();
  }

  /** Finishes the batches in hand, for STOP_TIMEOUT_MS at the most, and leaves the group. */
  async stop(): Promise<void> {
    this.stopping = true;
    this.tellStopped();
    await this.done;
  }

  /** Breaks the connections, as a fault of the network does. */
  cut(): void {
    this.sockets.cut();
  }

  private async supervise(): Promise<void> {
    while (!this.stopping) {
      this.sockets = new Sockets();
      this.joined = false;
      const config = this.settings.config();
      this.groupId = config.groupId;
      const consumer = createKafka(this.settings.connection, this.sockets).consumer({
        maxWaitTimeInMs: FETCH_WAIT_MS,
        allowAutoTopicCreation: false,
        ...config,
        retry: { ...RETRY, restartOnFailure: async () => false },
      });
      try {
        await Promise.race([this.consume(consumer), this.stopped]);
      } catch (error) {
        this.log().warn({ err: error }, 'cannot consume at the moment');
      }
      await this.end(consumer);
      if (!this.stopping) await this.pause(backoffMs(this.failures++, RESTART_BASE_MS, MAX_RESTART_MS));
    }
  }

  /** Rejects when the consumer has failed. */
  private async consume(consumer: Consumer): Promise<never> {
    const { events } = consumer;
    let lastSignMs = Date.now();
    const alive = () => (lastSignMs = Date.now());
    const failed = new Promise<never>((_, reject) => {
      consumer.on(events.CRASH, ({ payload }) => reject(payload.error));
      this.silenceTimer = setInterval(() => {
        if (Date.now() - lastSignMs > MAX_SILENCE_MS && !this.settings.busy?.())
          reject(new Error(`no sign of life for ${MAX_SILENCE_MS} ms`));
      }, SILENCE_CHECK_MS);
    });
    // It may reject while the steps below are still at work; it counts when they are done.
    failed.catch(() => {});
    for (const event of [events.FETCH_START, events.HEARTBEAT, events.REBALANCING, events.END_BATCH_PROCESS])
      consumer.on(event, alive);
    consumer.on(events.GROUP_JOIN, () => {
      alive();
      this.joined = true;
      this.settings.onJoin?.(consumer);
    });
    consumer.on(events.FETCH, () => {
      alive();
      this.failures = 0;
      this.becomeReady();
    });
    const { topic, fromBeginning } = this.settings;
    await consumer.connect();
    await consumer.subscribe({ topics: [topic], fromBeginning });
    await consumer.run(this.settings.run());
    return failed;
  }

  /** Leaves nothing behind: a connection, a timer, a member of the group. */
  private async end(consumer: Consumer): Promise<void> {
    clearInterval(this.silenceTimer);
    try {
      await withTimeout(this.joined ? STOP_TIMEOUT_MS : LEAVE_TIMEOUT_MS, consumer.disconnect());
    } catch (error) {
      const unfinished = this.settings.busy?.() ?? false;
      if (unfinished) this.log().warn('a handler did not return in time; its batch comes again');
      else this.log().debug({ err: error }, 'disconnecting');
    }
    this.sockets.destroy();
  }

  private async pause(waitMs: number): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    await Promise.race([this.stopped, new Promise((resolve) => (timer = setTimeout(resolve, waitMs)))]);
    clearTimeout(timer);
  }

  private log() {
    return logger('kafka').child({ topic: this.settings.topic, group: this.groupId });
  }
}
