import { backoffMs, logger, settlesWithin } from '@tollgate/runtime';
import type { Consumer, ConsumerConfig, ConsumerRunConfig } from 'kafkajs';
import { createKafka, RETRY, Sockets, type KafkaConnection } from './connection';
import { isRefused, lackOfReading, type RightMissingError } from './rights';

const RESTART_BASE_MS = 100;
const MAX_RESTART_MS = 2_000;
/** Batches whose handlers take longer than this after `stop` are abandoned: they come again. */
export const STOP_TIMEOUT_MS = 15_000;
/**
 * To commit what was in hand and to tell the group. It takes milliseconds; a broker that is gone or silent would have
 * it tried for much longer.
 */
const LEAVE_TIMEOUT_MS = 3_000;
/** A consumer that is not in its group, or alone in it, or that has failed with nothing in hand, has nobody to tell. */
const DROP_TIMEOUT_MS = 1_000;
/**
 * A consumer that has shown no sign of life for so long, and has no batch in hand, hangs. Longer than any one request
 * of it may take.
 */
const MAX_SILENCE_MS = 90_000;
const SILENCE_CHECK_MS = 5_000;
/**
 * How long a fetch waits at the broker when there is nothing: bounds how late a pause, a rebalance or a stop is
 * noticed, not how late a message comes.
 */
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
  /** Its group is its own: there is nobody who waits for it to leave. */
  alone?: boolean;
}

/**
 * A kafkajs consumer that is there until it is stopped. kafkajs goes on by itself after some failures and ends silently
 * after others, so any failure that reaches here ends the consumer, with its connections, and begins another one:
 *
 *   starting ──joined──▶ consuming ──crash, silence──▶ ended ──backoff──▶ starting …      stop: the batches in hand are
 *   finished, the group is left
 */
export class SupervisedConsumer {
  private sockets = new Sockets();
  private stopping = false;
  private groupId = '';
  private joined = false;
  /** Settled when the consumer is in its group, or will not be. */
  private entering: Promise<void> = Promise.resolve();
  private failures = 0;
  private silenceTimer: NodeJS.Timeout | undefined;
  private done: Promise<void> = Promise.resolve();
  private becomeReady: () => void = () => {};
  private tellStopped: () => void = () => {};
  private readonly stopped = new Promise<void>((resolve) => (this.tellStopped = resolve));
  /** Resolves when the first fetch has been answered: from then on, nothing new is missed. */
  readonly ready = new Promise<void>((resolve) => (this.becomeReady = resolve));

  private tellRefused: () => void = () => {};
  /** Resolves when the brokers have refused the user for the first time: `lack` says what. */
  readonly refused = new Promise<void>((resolve) => (this.tellRefused = resolve));
  /** What the user may not do, as far as is known: until something could be fetched. */
  lack: RightMissingError | undefined;

  constructor(private readonly settings: ConsumerSettings) {}

  start(): void {
    this.done = this.supervise();
  }

  /**
   * Finishes the batches in hand, for STOP_TIMEOUT_MS at the most, and leaves the group; with nothing in hand it takes
   * twice LEAVE_TIMEOUT_MS at the most.
   */
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
        // eslint-disable-next-line no-restricted-syntax -- a failure or the stop, whichever comes first
        await Promise.race([this.consume(consumer), this.stopped]);
      } catch (error) {
        this.log().warn({ err: error }, 'cannot consume at the moment');
        this.lack = lackOfReading(error, this.settings.topic, this.groupId) ?? this.lack;
        if (isRefused(error)) this.tellRefused();
      }
      await this.end(consumer);
      const waitMs = backoffMs(this.failures++, RESTART_BASE_MS, MAX_RESTART_MS);
      if (!this.stopping) await settlesWithin(waitMs, this.stopped);
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
      this.lack = undefined;
      this.becomeReady();
    });
    this.entering = this.enter(consumer);
    await this.entering;
    return failed;
  }

  /** Resolves in the group, or when it has failed. */
  private async enter(consumer: Consumer): Promise<void> {
    const { topic, fromBeginning } = this.settings;
    await consumer.connect();
    await consumer.subscribe({ topics: [topic], fromBeginning });
    if (!this.stopping) await consumer.run(this.settings.run());
  }

  /** Leaves nothing behind: a connection, a timer, a member of the group. */
  private async end(consumer: Consumer): Promise<void> {
    clearInterval(this.silenceTimer);
    // Who is just entering the group cannot leave it yet. It would stay there for a session, and what it was given
    // would be nobody's.
    if (this.stopping && !this.settings.alone) await settlesWithin(LEAVE_TIMEOUT_MS, this.entering);
    const leaving = consumer.disconnect().catch((error: unknown) => this.log().debug({ err: error }, 'disconnecting'));
    const untilMs = Date.now() + STOP_TIMEOUT_MS;
    let busy: boolean;
    let left: boolean;
    do {
      busy = this.joined && (this.settings.busy?.() ?? false);
      const missed = this.joined && this.stopping && !this.settings.alone;
      const waitMs = busy || missed ? LEAVE_TIMEOUT_MS : DROP_TIMEOUT_MS;
      left = await settlesWithin(Math.min(waitMs, untilMs - Date.now()), leaving);
      // What was in hand just now has to be committed yet.
    } while (!left && busy && Date.now() < untilMs);
    if (!left && this.settings.busy?.()) this.log().warn('a handler did not return in time; its batch comes again');
    this.sockets.destroy();
  }

  private log() {
    return logger('kafka').child({ topic: this.settings.topic, group: this.groupId });
  }
}
