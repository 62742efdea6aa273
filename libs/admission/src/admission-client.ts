import type {
  AdmissionStore,
  AdmitRequest,
  AdmitResult,
  ExtendRequest,
  ExtendResult,
  LookRequest,
  LookResult,
  Settlement,
  SettleResult,
} from './admission-store';
import { BatchQueue } from './batch-queue';
import { HoldDeadline } from './hold-deadline';
import { HoldHeartbeat, type RunningRequest } from './hold-heartbeat';
import { TenantUnknownError } from './item-failures';

/** `deadline`: give it back with `track`. */
export type ClientAdmitResult =
  (Extract<AdmitResult, { kind: 'held' }> & { deadline: HoldDeadline }) | Extract<AdmitResult, { kind: 'refused' }>;

/**
 * How a process calls the admission store, one request at a time: batches each operation by itself, so that a
 * settlement that waits for the disk holds up no admission. Every method ends in bounded time, with an UnavailableError
 * when the store does not answer or too much waits already.
 */
export class AdmissionClient {
  private readonly admits: BatchQueue<AdmitRequest, AdmitResult>;
  private readonly looks: BatchQueue<LookRequest, LookResult>;
  private readonly extensions: BatchQueue<ExtendRequest, ExtendResult>;
  private readonly settlements: BatchQueue<Settlement, SettleResult>;
  private readonly voids: BatchQueue<{ id: string; tenantId: string }, boolean>;
  private readonly signs: HoldHeartbeat;

  constructor(
    private readonly store: AdmissionStore,
    options: { signOfLifeIntervalMs?: number } = {},
  ) {
    const { admit, settle } = store.answersWithinMs;
    // Nobody runs under a hold that was made for a request which is refused by now.
    const onLate = ({ draft: { id, tenantId } }: AdmitRequest, { kind }: AdmitResult) => {
      if (kind === 'held') this.void({ id, tenantId }).catch(() => {});
    };
    this.admits = new BatchQueue((requests) => store.admit(requests), { answersWithinMs: admit, onLate });
    this.looks = new BatchQueue<LookRequest, LookResult>((requests) => store.look(requests), {
      answersWithinMs: admit,
    });
    this.extensions = new BatchQueue((requests) => store.extend(requests));
    this.settlements = new BatchQueue<Settlement, SettleResult>((settlements) => store.settle(settlements), {
      answersWithinMs: settle,
    });
    this.voids = new BatchQueue((holds) => store.void(holds));
    this.signs = new HoldHeartbeat(store, options.signOfLifeIntervalMs);
  }

  /**
   * RangeError: numbers out of range, or an id that another or an ended hold has. Of a tenant whose credit the store
   * must ask for first it waits for that, apart from the batches, so that nobody else does.
   */
  admit(request: AdmitRequest): Promise<ClientAdmitResult> {
    return onceKnown(() => this.admitNow(request));
  }

  /** Waits for the credit of a tenant as `admit` does. */
  look(request: LookRequest): Promise<LookResult> {
    return onceKnown(() => this.looks.push(request));
  }

  /**
   * Its time in the queue is on the hold's account, and so is a first try that was not answered: that one may have made
   * the hold.
   */
  private async admitNow(request: AdmitRequest): Promise<ClientAdmitResult> {
    const sentMs = performance.now();
    const result = await this.admits.push(request);
    return result.kind === 'held' ? { ...result, deadline: new HoldDeadline(sentMs, this.store.leaseMs) } : result;
  }

  /** Go by `holdNanos` of the answer: after a lost answer the repeat may have extended twice. */
  extend(request: ExtendRequest): Promise<ExtendResult> {
    return this.extensions.push(request);
  }

  /** Durable when it resolves. RangeError: the cost is above the hold; nothing was changed. */
  settle(settlement: Settlement): Promise<SettleResult> {
    return this.settlements.push(settlement);
  }

  /** False: there was no such pending hold. */
  void(hold: { id: string; tenantId: string }): Promise<boolean> {
    return this.voids.push(hold);
  }

  /** From now on the hold is kept alive and its progress recorded, until `untrack`. */
  track(request: RunningRequest): void {
    this.signs.track(request);
  }

  /** Before `settle` and `void`: an ended hold would count as lost. */
  untrack(id: string): void {
    this.signs.untrack(id);
  }

  /** Lets what was asked for finish. Then close the store. */
  async close(): Promise<void> {
    this.signs.stop();
    const queues = [this.admits, this.looks, this.extensions, this.settlements, this.voids];
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
