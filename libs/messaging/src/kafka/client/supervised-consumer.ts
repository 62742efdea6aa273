import { backoffMs, logger, settlesWithin } from '@tollgate/runtime';
import type { Consumer, ConsumerConfig, ConsumerRunConfig, EachBatchHandler, EachBatchPayload } from 'kafkajs';
import { createKafka, RETRY, Sockets, type KafkaConnection } from './connection';
import { UndecodedBatch } from './record-batches';
import { isRefused, lackOfReading, type RightMissingError } from './rights';

const RESTART_BASE_MS = 100;
const MAX_RESTART_MS = 2_000;
/** Batches whose handlers take longer than this after `stop` are abandoned and redelivered. */
const STOP_TIMEOUT_MS = 15_000;
/**
 * The time limit for committing finished work and leaving the group. Usually milliseconds. Retries against a broker
 * that is down or silent would take much longer.
 */
const LEAVE_TIMEOUT_MS = 3_000;
/** The shorter limit of a consumer that has no batch in progress and is not in its group, alone in it, or failed. */
const DROP_TIMEOUT_MS = 1_000;
/**
 * A consumer without any activity for this time, and without a batch in progress, hangs. Longer than any single request
 * of it may take.
 */
const MAX_SILENCE_MS = 90_000;
const SILENCE_CHECK_MS = 5_000;
/**
 * How long a fetch waits at the broker when there are no messages. Limits the delay of a pause, a rebalance or a stop,
 * not the delay of a message. With waits of up to 1 s while idle, which a stop ended, idle services took a quarter less
 * processor time. But after all connections had broken, a group then stood still for 10 to 20 s.
 */
const FETCH_WAIT_MS = 250;
/** The pause of a partition whose next batch cannot be decoded, until it is fetched again. */
const UNDECODED_PAUSE_MS = 5_000;

export interface ConsumerSettings {
  connection: KafkaConnection;
  topic: string;
  /** Where a group without offsets starts. */
  fromBeginning: boolean;
  /** Called for each new consumer. */
  config(): ConsumerConfig;
  /** Called for each new consumer. Nothing else than `eachBatch` takes messages. */
  run(): ConsumerRunConfig & { eachBatch: EachBatchHandler };
  /** Called each time a batch could not be decoded. */
  onUndecoded?: () => void;
  /** Called each time the group is joined, before anything is fetched. */
  onJoin?: (consumer: Consumer) => void;
  /** Called each time a fetch was answered, before its messages are handled. */
  onFetch?: () => void;
  /** Whether a handler has a batch in progress. */
  busy?: () => boolean;
  /** The group has no other members, so nobody waits for it to leave. */
  alone?: boolean;
}

/**
 * A kafkajs consumer that runs until it is stopped. kafkajs recovers from some failures and ends silently after others.
 * So any failure that gets here ends the consumer with its connections, and starts a new one:
 *
 *   starting ──joined──▶ consuming ──crash, silence──▶ ended ──backoff──▶ starting …
 *
 * `stop` finishes the batches in progress and leaves the group.
 */
export class SupervisedConsumer {
  private sockets = new Sockets();
  private stopping = false;
  private groupId = '';
  private joined = false;
  /** Settled when the consumer has joined its group, or has failed to. */
  private entering: Promise<void> = Promise.resolve();
  private failures = 0;
  private silenceTimer: NodeJS.Timeout | undefined;
  /** Each resumes a partition. */
  private readonly resting = new Set<NodeJS.Timeout>();
  private done: Promise<void> = Promise.resolve();
  private becomeReady: () => void = () => {};
  private tellStopped: () => void = () => {};
  private readonly stopped = new Promise<void>((resolve) => (this.tellStopped = resolve));
  /** Resolves when the first fetch has been answered. From then on no new message is missed. */
  readonly ready = new Promise<void>((resolve) => (this.becomeReady = resolve));

  private tellRefused: () => void = () => {};
  /** Resolves when the brokers have refused the user for the first time: `lack` has the reason. */
  readonly refused = new Promise<void>((resolve) => (this.tellRefused = resolve));
  /** The known missing right, until something could be fetched. */
  lack: RightMissingError | undefined;

  constructor(private readonly settings: ConsumerSettings) {}

  start(): void {
    this.done = this.supervise();
  }

  /**
   * Finishes the batches in progress, within STOP_TIMEOUT_MS, and leaves the group. Without a batch in progress it
   * takes at most twice LEAVE_TIMEOUT_MS.
   */
  async stop(): Promise<void> {
    this.stopping = true;
    this.tellStopped();
    await this.done;
  }

  /** Breaks the connections, like a network fault. */
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
        this.log().warn({ err: error }, 'consuming failed; retrying');
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
          reject(new Error(`no activity for ${MAX_SILENCE_MS} ms`));
      }, SILENCE_CHECK_MS);
    });
    // It may reject during the steps below. That counts when they are done.
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
      this.settings.onFetch?.();
    });
    this.entering = this.enter(consumer);
    await this.entering;
    return failed;
  }

  /** Resolves when the group is joined, or when that failed. */
  private async enter(consumer: Consumer): Promise<void> {
    const { topic, fromBeginning } = this.settings;
    await consumer.connect();
    await consumer.subscribe({ topics: [topic], fromBeginning });
    if (!this.stopping) await consumer.run(this.guarded(this.settings.run()));
  }

  /**
   * A batch that cannot be decoded stops its partition, and no other one. It is neither handled nor passed over: it is
   * fetched again until it can be decoded, or an operator has removed it or moved the group's offset.
   */
  private guarded(run: ReturnType<ConsumerSettings['run']>): ConsumerRunConfig {
    const eachBatch = async (payload: EachBatchPayload): Promise<void> => {
      const { batch, pause, resolveOffset } = payload;
      const first: object | undefined = batch.messages[0];
      if (first instanceof UndecodedBatch) {
        this.tellUndecoded(first, batch.partition);
        this.rest(pause());
        return;
      }
      await run.eachBatch(payload);
      if (run.eachBatchAutoResolve !== false) resolveOffset(batch.lastOffset());
    };
    return { ...run, eachBatchAutoResolve: false, eachBatch };
  }

  private tellUndecoded({ firstOffset, lastOffset, cause }: UndecodedBatch, partition: number): void {
    this.settings.onUndecoded?.();
    this.log().error(
      { err: cause, partition, firstOffset, lastOffset },
      'a batch cannot be decoded; its partition waits for an operator (runbook TollgateBatchesFail)',
    );
  }

  private rest(resume: () => void): void {
    const timer = setTimeout(() => {
      this.resting.delete(timer);
      resume();
    }, UNDECODED_PAUSE_MS);
    this.resting.add(timer);
  }

  /** Leaves nothing behind: no connection, no timer, no member of the group. */
  private async end(consumer: Consumer): Promise<void> {
    clearInterval(this.silenceTimer);
    // A consumer that is just joining the group cannot leave it yet. It would stay a member for a session, and nobody
    // would consume its partitions.
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
      // Finished work has yet to be committed.
    } while (!left && busy && Date.now() < untilMs);
    if (!left && this.settings.busy?.())
      this.log().warn('a handler did not return in time; its batch will be redelivered');
    for (const timer of this.resting) clearTimeout(timer);
    this.resting.clear();
    this.sockets.destroy();
  }

  private log() {
    return logger('kafka').child({ topic: this.settings.topic, group: this.groupId });
  }
}
