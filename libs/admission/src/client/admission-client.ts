import type {
  AdmissionStore,
  AdmitRequest,
  AdmitResult,
  AnswerRequest,
  ExpectedEnd,
  ExtendRequest,
  ExtendResult,
  LookRequest,
  LookResult,
  RecallRequest,
  RecallResult,
  Settlement,
  SettleResult,
} from '../admission-store';
import { BatchQueue } from './batch-queue';
import { HoldDeadline } from './hold-deadline';
import { HoldHeartbeat, type RunningRequest } from './hold-heartbeat';
import { TenantUnknownError } from '../item-failures';

/** The sealed answers of a call: two of the largest by default, or one that is larger. */
const MAX_ANSWER_CHARS_PER_CALL = 3 * 1024 * 1024;
const MAX_ANSWERS_PER_CALL = 64;
/** Tenants; the store reads all holds of each. */
const MAX_EXPECTED_ENDS_PER_CALL = 16;

/** Pass `deadline` on to `track`. */
export type ClientAdmitResult =
  (Extract<AdmitResult, { kind: 'held' }> & { deadline: HoldDeadline }) | Extract<AdmitResult, { kind: 'refused' }>;

/**
 * A process's access to the admission store, one request at a time. Each operation is batched by itself, so a
 * settlement that waits for the disk does not delay an admission. Every method ends in bounded time, with an
 * UnavailableError when the store does not answer or the queue is full.
 */
export class AdmissionClient {
  private readonly admits: BatchQueue<AdmitRequest, AdmitResult>;
  private readonly looks: BatchQueue<LookRequest, LookResult>;
  private readonly ends: BatchQueue<string, readonly ExpectedEnd[]>;
  private readonly recalls: BatchQueue<RecallRequest, RecallResult>;
  private readonly answers: BatchQueue<AnswerRequest, string | null>;
  private readonly extensions: BatchQueue<ExtendRequest, ExtendResult>;
  private readonly settlements: BatchQueue<Settlement, SettleResult>;
  private readonly voids: BatchQueue<{ id: string; tenantId: string }, boolean>;
  private readonly heartbeat: HoldHeartbeat;

  constructor(
    private readonly store: AdmissionStore,
    options: { heartbeatIntervalMs?: number } = {},
  ) {
    const { admit, settle } = store.answersWithinMs;
    // The request has been refused by now, so its hold is not needed.
    const onLate = ({ draft: { id, tenantId } }: AdmitRequest, { kind }: AdmitResult) => {
      if (kind === 'held') this.void({ id, tenantId }).catch(() => {});
    };
    this.admits = new BatchQueue((requests) => store.admit(requests), { answersWithinMs: admit, onLate });
    this.looks = new BatchQueue<LookRequest, LookResult>((requests) => store.look(requests), {
      answersWithinMs: admit,
    });
    this.ends = new BatchQueue<string, readonly ExpectedEnd[]>((tenantIds) => store.expectedEnds(tenantIds), {
      answersWithinMs: admit,
      maxItems: MAX_EXPECTED_ENDS_PER_CALL,
    });
    this.recalls = new BatchQueue<RecallRequest, RecallResult>((requests) => store.recall(requests), {
      answersWithinMs: settle,
    });
    this.answers = new BatchQueue<AnswerRequest, string | null>((requests) => store.answers(requests), {
      answersWithinMs: admit,
      maxItems: MAX_ANSWERS_PER_CALL,
      maxChars: MAX_ANSWER_CHARS_PER_CALL,
      charsOf: ({ answerChars }) => answerChars,
      ownerOf: ({ tenantId }) => tenantId,
    });
    this.extensions = new BatchQueue((requests) => store.extend(requests));
    this.settlements = new BatchQueue<Settlement, SettleResult>((settlements) => store.settle(settlements), {
      answersWithinMs: settle,
      charsOf: ({ answer }) => answer?.sealed?.length ?? 0,
    });
    this.voids = new BatchQueue((holds) => store.void(holds));
    this.heartbeat = new HoldHeartbeat(store, options.heartbeatIntervalMs);
  }

  /**
   * RangeError: numbers out of range, or the id of another or an ended hold. If the store must first ask for the
   * tenant's credit, the call waits for it outside the batches, so other tenants do not wait.
   */
  admit(request: AdmitRequest): Promise<ClientAdmitResult> {
    return onceKnown(() => this.admitNow(request));
  }

  /** Waits for an unknown tenant's credit as `admit` does. */
  look(request: LookRequest): Promise<LookResult> {
    return onceKnown(() => this.looks.push(request));
  }

  /** When the first running request of each key is expected to end. The caller keeps the answer for a while. */
  expectedEnds(tenantId: string): Promise<readonly ExpectedEnd[]> {
    return this.ends.push(tenantId);
  }

  /** The state of a claim. */
  recall(request: RecallRequest): Promise<RecallResult> {
    return this.recalls.push(request);
  }

  /**
   * The sealed answer of a settled claim. Null: it is not kept any more. The calls are bounded by the length of their
   * answers, and tenants take turns: many large answers of one tenant delay one another, and those of others by one
   * call.
   */
  answer(request: AnswerRequest): Promise<string | null> {
    return this.answers.push(request);
  }

  /**
   * The hold's deadline counts from the start of the call, with its time in the queue and an unanswered first attempt.
   * That attempt may have made the hold.
   */
  private async admitNow(request: AdmitRequest): Promise<ClientAdmitResult> {
    const sentMs = performance.now();
    const result = await this.admits.push(request);
    return result.kind === 'held' ? { ...result, deadline: new HoldDeadline(sentMs, this.store.leaseMs) } : result;
  }

  /** Use `holdNanos` of the result: after a lost answer, the repeat may have extended twice. */
  extend(request: ExtendRequest): Promise<ExtendResult> {
    return this.extensions.push(request);
  }

  /** Durable when it resolves. RangeError: the cost is above the hold, and nothing was changed. */
  settle(settlement: Settlement): Promise<SettleResult> {
    return this.settlements.push(settlement);
  }

  /** False: there was no such pending hold. */
  void(hold: { id: string; tenantId: string }): Promise<boolean> {
    return this.voids.push(hold);
  }

  /** Keeps the hold alive and records its progress, until `untrack`. */
  track(request: RunningRequest): void {
    this.heartbeat.track(request);
  }

  /** Call before `settle` and `void`: otherwise an ended hold counts as lost. */
  untrack(id: string): void {
    this.heartbeat.untrack(id);
  }

  /** Waits for calls in progress. Close the store afterwards. */
  async close(): Promise<void> {
    this.heartbeat.stop();
    const { admits, looks, ends, recalls, answers, extensions, settlements, voids } = this;
    const queues = [admits, looks, ends, recalls, answers, extensions, settlements, voids];
    await Promise.all(queues.map((queue) => queue.idle()));
  }
}

function onceKnown<T>(ask: () => Promise<T>): Promise<T> {
  return ask().catch(async (error: unknown) => {
    if (!(error instanceof TenantUnknownError)) throw error;
    await error.known;
    return ask();
  });
}
