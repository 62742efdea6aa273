import type { Books } from '../../e2e/fixtures';
import type { Outcome } from '../client-request';
import type { PlannedRound } from './plan';
import { WORK_MS, type Control } from './control';

/** No client waits longer for a first byte, the next bytes or an error. */
const WAIT_LIMIT_MS = 5_000;
/**
 * The processor time of all services and servers until a client has its first byte or an error: 10 ms for its own
 * request, and as much for each of nine requests before it.
 */
const REQUEST_WORK_MS = 100;
/** A gateway that fails three checks in this time is down (deploy/haproxy/haproxy.cfg). */
const DOWN_AFTER_MS = 1_550;
/** A gateway waits for its store for up to this time. */
const STORE_WAIT_MS = 1_000;
/** Time for a load balancer to notice that a gateway has ended or is not ready. */
const NOTICE_MS = 3_000;
/** The processor time of a recovery: starts, new consumer groups, and the backlog. */
const RECOVERY_WORK_MS = 2_000;
/** A stream records its delivered tokens once a second. The record may take this long to arrive. */
const RECORD_MS = 1_000;
const RECORD_SLACK_MS = 500;
/** The allowed failures while a part is unavailable. A refusal (4xx) or a defect (500) would be wrong. */
const TRY_AGAIN = /^(broken|50[234] [a-z_]+|event [a-z_]+|silent .*)$/;
const SHOWN = 5;

export interface Waits {
  p50Ms: number;
  maxMs: number;
  /** By the clocks of the clients. */
  rawMaxMs: number;
}

/** The data from which a client's wait for Tollgate is computed. */
export interface Measure {
  control: Control;
  /** The time without a load balancer. */
  nobody?: { fromMs: number; untilMs: number };
}

/** Whether a request was refused or ended because a server was unavailable, so that the client tries again. */
export const isUnavailable = (failure: string | null): boolean =>
  failure === '503 overloaded_error' || failure === 'event overloaded_error';

/** Whether the gateway was down, or its store late, only because the machine did not run it for that long. */
export function isByStandstill({ failure, endedMs }: Outcome, control: Pick<Control, 'meanMs'>): boolean {
  const isDown = failure === 'broken' || failure === '502 upstream_error';
  if (!isDown && !isUnavailable(failure)) return false;
  const limitMs = isDown ? DOWN_AFTER_MS : STORE_WAIT_MS;
  return explainedMs(control, endedMs - limitMs, endedMs) >= limitMs;
}

/** How long clients received nothing, minus their waits for the machine. */
export function waitsOf(outcomes: readonly Outcome[], measure: Measure): Waits {
  const waits = outcomes.map((one) => waitMs(one, measure)).sort((a, b) => a - b);
  const rawMaxMs = Math.max(0, ...outcomes.map(({ silence }) => silence.untilMs - silence.fromMs));
  return { p50Ms: waits[Math.floor(waits.length / 2)] ?? 0, maxMs: waits.at(-1) ?? 0, rawMaxMs };
}

/** How long a client may have waited for the machine between the two times. */
const explainedMs = (control: Pick<Control, 'meanMs'>, fromMs: number, untilMs: number): number =>
  (REQUEST_WORK_MS / WORK_MS) * control.meanMs(fromMs, untilMs);

/** The time by which the load balancer must have noticed a fault that began at `fromMs`. */
export const noticedMs = (control: Control, fromMs: number): number =>
  fromMs + NOTICE_MS + explainedMs(control, fromMs, fromMs + NOTICE_MS);

/** By how much a recovery between the two times may take longer than on an idle machine. */
export const recoverySlackMs = (control: Control, fromMs: number, untilMs: number): number =>
  (RECOVERY_WORK_MS / WORK_MS) * Math.max(0, control.meanMs(fromMs, untilMs) - WORK_MS);

/** The longest silence while there was a load balancer, minus the wait for the machine. */
export function waitMs({ silence }: Outcome, { control, nobody }: Measure): number {
  const { untilMs } = silence;
  const isAsked = nobody && silence.fromMs < nobody.untilMs && untilMs > nobody.fromMs;
  const fromMs = isAsked ? Math.min(nobody.untilMs, untilMs) : silence.fromMs;
  return Math.max(0, untilMs - fromMs - explainedMs(control, fromMs, untilMs));
}

/** The clients that waited too long, and those with a wrong failure. */
export function wrongAnswers(
  outcomes: readonly Outcome[],
  measure: Measure,
  isExpected: (outcome: Outcome) => boolean,
  begunMs: number,
): string[] {
  const findings: string[] = [];
  const long = outcomes.filter((one) => waitMs(one, measure) > WAIT_LIMIT_MS);
  if (long.length > 0) {
    const shown = long.slice(0, SHOWN).map((one) => {
      const { kind, requestId, failure, silence, startedMs } = one;
      const at = ((silence.fromMs - begunMs) / 1_000).toFixed(1);
      const part = silence.fromMs > startedMs ? 'in the middle' : 'for the first byte';
      const waited = `${Math.round(waitMs(one, measure))} ms ${part}, from ${at} s on`;
      return `${requestId} (${kind}): ${waited}, then ${failure ?? 'a complete answer'}`;
    });
    findings.push(`${long.length} clients waited longer than ${WAIT_LIMIT_MS} ms:\n    ${shown.join('\n    ')}`);
  }
  const untrue = outcomes.filter((one) => one.failure !== null && !isExpected(one) && !TRY_AGAIN.test(one.failure));
  if (untrue.length > 0) {
    const shown = untrue
      .slice(0, SHOWN)
      .map(
        ({ requestId, failure, startedMs }) =>
          `${requestId} at ${((startedMs - begunMs) / 1_000).toFixed(1)} s: ${failure}`,
      );
    findings.push(`${untrue.length} wrong answers:\n    ${shown.join('\n    ')}`);
  }
  return findings;
}

/**
 * Broken streams whose charge is wrong. It must be between the tokens that the client saw and those that it asked for.
 * If the gateway may have lost its last record (it died, or was frozen or cut off for longer than a lease), the lower
 * limit is the record before the first fault. If Redis was emptied too, it is zero (docs/money.md).
 */
export function wrongCharges(
  { faults }: PlannedRound,
  outcomes: readonly Outcome[],
  charged: ReadonlyMap<string, number>,
  begunMs: number,
): string[] {
  const touchesHolds = faults.some(({ part }) => part === 'gateway' || part === 'redis');
  const empties = faults.some(({ kind }) => kind === 'empty');
  const untilMs = touchesHolds ? begunMs - RECORD_MS - RECORD_SLACK_MS : Infinity;
  return outcomes.flatMap(({ kind, failure, requestId, arrivalsMs, askedTokens }) => {
    if (kind !== 'stream' || failure === null || arrivalsMs.length === 0) return [];
    const surely = empties ? 0 : arrivalsMs.filter((ms) => ms < untilMs).length;
    const tokens = charged.get(requestId!) ?? 0;
    if (tokens >= surely && tokens <= askedTokens) return [];
    const seen = `${arrivalsMs.length} were seen, ${surely} surely recorded, ${askedTokens} requested`;
    return `${requestId} (${failure}): charged ${tokens} tokens; ${seen}`;
  });
}

/**
 * Whether the ledger may lack complete answers. A gateway that ends together with an emptied Redis loses the settled
 * events that it has not published (docs/money.md).
 */
export function mayLackAnswers({ faults }: PlannedRound): boolean {
  const empties = faults.some(({ kind }) => kind === 'empty');
  const ends = faults.some(({ part, kind }) => part === 'gateway' && (kind === 'kill' || kind === 'restart'));
  return empties && ends;
}

/** Counts the complete answers, and those that are not in the ledger. */
export function countBooked(
  outcomes: readonly Outcome[],
  books: ReadonlyMap<string, Books>,
): { whole: number; lacking: number } {
  const whole = outcomes.filter(({ failure }) => failure === null);
  const lacking = whole.filter(({ tenantId, requestId }) => !books.get(tenantId)?.charges.has(requestId!));
  return { whole: whole.length, lacking: lacking.length };
}
