import type { UnavailableError, UsageEvent } from '@tollgate/contracts';
import type {
  AdmitRequest,
  AdmitResult,
  LookRequest,
  LookResult,
  ExtendRequest,
  ExtendResult,
  Progress,
  Settlement,
  SettleResult,
  ParsedBalanceUpdate,
  Withdrawal,
  WithdrawResult,
  Repair,
  RepairResult,
  SweepOptions,
  Snapshot,
} from './operations/admission-operations';
import type { HoldsQuery, HoldView } from './operations/hold-view';
import type { ManagementCall } from './operations/call-rate';
import type { ExpectedEnd } from './operations/expected-ends';
import type { AnswerRequest, ClaimLimits, RecallRequest, RecallResult } from './operations/claim-operations';
import type { ItemFailure } from './item-failures';

export type * from './operations/admission-operations';
export type * from './operations/claim-operations';
export type * from './operations/expected-ends';
export type * from './operations/hold-view';

export const DEFAULT_LEASE_MS = 10_000;
export const DEFAULT_CLAIM_LIMITS: ClaimLimits = {
  keepMs: 24 * 60 * 60 * 1_000,
  maxClaims: 100_000,
  maxAnswerChars: 16 * 1024 * 1024,
};

/**
 * The admission store: limits, budgets, credit and holds, changed only by atomic operations. Both implementations pass
 * one conformance suite (`admission.suite.ts`): SQL functions in the standalone form, Redis Functions in the
 * distributed form.
 * Every operation takes an array and returns results in its order. Callers use `AdmissionClient`, which batches their
 * calls.
 * operations/hold-states.ts lists the states of a hold and every transition between them. Any other transition is
 * refused and counted.
 */
export abstract class AdmissionStore {
  /**
   * True: the store asks the books for an unknown tenant at its first request. An unknown tenant then does not mean
   * lost data.
   */
  readonly asksForTenants: boolean = false;
  /** The lifetime of a hold after its admission and after each heartbeat. */
  readonly leaseMs: number = DEFAULT_LEASE_MS;
  /**
   * The maximum time until a caller of the client has a result or an UnavailableError, including its time in the queue.
   */
  readonly answersWithinMs: { admit: number; settle: number } = { admit: Infinity, settle: Infinity };

  /**
   * Checks each request, all or nothing, in this order: tenant active, requests, tokens, concurrency, budgets, credit.
   * Safe to repeat by id. Need not wait for the disk. A claim is taken with the hold, or not at all; one that another
   * request has is refused as `claimed`, before any limit is checked.
   * A RangeError replaces the result of an invalid request: numbers out of range, the id of another hold, or the id of
   * an ended one.
   */
  abstract admit(requests: readonly AdmitRequest[]): Promise<(AdmitResult | ItemFailure)[]>;
  /**
   * Returns whether any request of this key would be admitted now, before its body is read. Takes and writes nothing.
   * Errors replace single results, as in `admit`.
   */
  abstract look(requests: readonly LookRequest[]): Promise<(LookResult | ItemFailure)[]>;
  /**
   * When the first running request of each key of a tenant is expected to end, whatever process runs it. Empty
   * while no length of their models is known, or more than 512 run. Reads the holds of the tenants, so it is for a
   * refused request and not for every one. An UnavailableError replaces the result of a tenant whose part of the store
   * does not answer.
   */
  abstract expectedEnds(tenantIds: readonly string[]): Promise<(ExpectedEnd[] | UnavailableError)[]>;
  /**
   * The states of claims. The state of a settled claim is durable. An UnavailableError replaces the result of a request
   * whose part of the store does not answer.
   */
  abstract recall(requests: readonly RecallRequest[]): Promise<(RecallResult | UnavailableError)[]>;
  /**
   * The sealed answers of settled claims, durable as their states are. Null: the answer is not kept any more, or the
   * claim is another body's by now. An UnavailableError replaces a result as in `recall`.
   */
  abstract answers(requests: readonly AnswerRequest[]): Promise<(string | null | UnavailableError)[]>;
  /** An UnavailableError replaces the result of a request whose part of the store does not answer. */
  abstract extend(requests: readonly ExtendRequest[]): Promise<(ExtendResult | UnavailableError)[]>;
  /**
   * False: there is no such pending hold, so the request must end. True also for a hold that an emptied store lost: its
   * grant remains valid. An UnavailableError replaces the result of a hold whose part of the store does not answer.
   */
  abstract progress(progress: readonly Progress[]): Promise<(boolean | UnavailableError)[]>;
  /**
   * Durable when it returns. Gives back the remainder of the hold, its concurrency slot, and the difference of tokens
   * (summed over the call).
   * A RangeError replaces the result of a settlement whose cost is above its hold: nothing changes, and the caller caps
   * the cost. The other settlements of the call stand.
   */
  abstract settle(settlements: readonly Settlement[]): Promise<(SettleResult | ItemFailure)[]>;
  /**
   * For a request that delivered nothing. Gives back credit, concurrency slot and tokens, but not its place in the
   * request rate. False: there is no such pending hold.
   */
  abstract void(holds: readonly { id: string; tenantId: string }[]): Promise<boolean[]>;
  /**
   * Settles or voids expired holds. Returns their records and those of settled holds that were not confirmed in time,
   * for publication. Each record goes to one sweeper at a time.
   */
  abstract sweep(options: SweepOptions): Promise<UsageEvent[]>;
  abstract applyBalanceUpdates(updates: readonly ParsedBalanceUpdate[]): Promise<void>;
  /**
   * Takes an amount out of available credit, all or nothing, before the books are debited. Running requests keep their
   * holds, and nothing is admitted on the withdrawn amount.
   * The withdrawal ends with the balance update of `version` or a newer one. If that update includes the debit,
   * available credit does not change. Otherwise it rises again.
   * A repeat for the same version replaces the first call. Withdrawals are rare, so they are not batched.
   */
  abstract withdraw(withdrawal: Withdrawal): Promise<WithdrawResult>;
  /**
   * Sets version, balance, suspension and budgets to the books' values, whatever version the store has. Removes all
   * withdrawals, and computes the running sums of the tenant and its keys from its holds. Unreadable data are dropped.
   * Later balance updates of older versions only release their holds. Newer versions are applied as usual.
   */
  abstract repair(repair: Repair): Promise<RepairResult>;
  /**
   * Tenants with ids after `after`, ascending, at most `limit`, from one instant. Reads all holds of these tenants and
   * of no others.
   */
  abstract snapshot(options: { tenantId?: string; after?: string; limit: number }): Promise<Snapshot[]>;
  /** A tenant's holds, ascending by id. Reads all of them, so it is for reconcile and not for a request. */
  abstract holds(query: HoldsQuery): Promise<HoldView[]>;
  /**
   * Takes a call of a management token from its bucket, which all processes share. Milliseconds until there is one; 0:
   * taken.
   */
  abstract takeCall(call: ManagementCall): Promise<number>;
  /**
   * Rejects with the reason, within bounded time, while the store cannot write durably. Callers within the same second
   * share one probe, so it is cheap.
   */
  abstract check(): Promise<void>;
  abstract start(): Promise<void>;
  abstract close(): Promise<void>;
}
