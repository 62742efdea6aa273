import type { Books } from '../../e2e/fixtures';
import type { Outcome } from '../client-request';
import type { PlannedRound } from './plan';
import { WORK_MS, type Control } from './control';

/** No client waits longer for a first byte, the next bytes or an error. */
export const WAIT_LIMIT_MS = 5_000;
/**
 * Processor time of all services and servers, one after the other, until a client has its first byte or an error: 10 ms
 * for its own request (on one connection), and as much for each of nine before it in line.
 */
const REQUEST_WORK_MS = 100;
/** What a stream delivered is recorded once a second; this much may pass until the record has arrived. */
const RECORD_MS = 1_000;
const RECORD_SLACK_MS = 500;
/**
 * What somebody may be told who asks a service some part of which is away. A refusal (4xx) would be wrong, as would be
 * a defect (500).
 */
const TRY_AGAIN = /^(broken|50[234] [a-z_]+|event [a-z_]+|silent .*)$/;
const SHOWN = 5;

export interface Waits {
  p50Ms: number;
  maxMs: number;
  /** As the clients' clocks said. */
  rawMaxMs: number;
}

/** How to tell what a client waited for Tollgate. */
export interface Measure {
  control: Control;
  /** No load balancer was there to answer. */
  nobody?: { fromMs: number; untilMs: number };
}

/** How long clients heard nothing, less what they waited for the machine. */
export function waitsOf(outcomes: readonly Outcome[], measure: Measure): Waits {
  const waits = outcomes.map((one) => waitMs(one, measure)).sort((a, b) => a - b);
  const rawMaxMs = Math.max(0, ...outcomes.map(({ silence }) => silence.untilMs - silence.fromMs));
  return { p50Ms: waits[Math.floor(waits.length / 2)] ?? 0, maxMs: waits.at(-1) ?? 0, rawMaxMs };
}

/** What a client may have waited for the machine between the two. */
export const explainedMs = (control: Control, fromMs: number, untilMs: number): number =>
  (REQUEST_WORK_MS / WORK_MS) * control.meanMs(fromMs, untilMs);

/** The longest silence, from when there was somebody to answer, less what the machine explains. */
export function waitMs({ silence }: Outcome, { control, nobody }: Measure): number {
  const { untilMs } = silence;
  const isAsked = nobody && silence.fromMs < nobody.untilMs && untilMs > nobody.fromMs;
  const fromMs = isAsked ? Math.min(nobody.untilMs, untilMs) : silence.fromMs;
  return Math.max(0, untilMs - fromMs - explainedMs(control, fromMs, untilMs));
}

/** Clients that waited for too long, and those that were told what is not true. */
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
      const part = silence.fromMs > startedMs ? 'in the midst' : 'for the first byte';
      return `${requestId} (${kind}): ${Math.round(waitMs(one, measure))} ms ${part}, from ${at} s on, then ${failure ?? 'all of it'}`;
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
    findings.push(`${untrue.length} answers that should not be:\n    ${shown.join('\n    ')}`);
  }
  return findings;
}

/**
 * Streams that did not arrive whole are charged between what their client had seen and what it asked for. Where their
 * gateway may have lost its last word (it died, or stood still or was cut off for longer than its holds live), what was
 * seen until the record before the first fault; where Redis was emptied besides, nothing (docs/money.md).
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
    return `${requestId} (${failure}): charged ${tokens} tokens, seen ${arrivalsMs.length}, surely ${surely}, asked for ${askedTokens}`;
  });
}

/**
 * Whether the ledger may lack complete answers: a gateway that ends together with an emptied Redis takes along what it
 * had settled and not published (docs/money.md), all of it where Kafka was away.
 */
export function mayLackAnswers({ faults }: PlannedRound): boolean {
  const empties = faults.some(({ kind }) => kind === 'empty');
  const ends = faults.some(({ part, kind }) => part === 'gateway' && (kind === 'kill' || kind === 'restart'));
  return empties && ends;
}

/** How many of the answers that arrived whole are in the ledger */
export function countBooked(
  outcomes: readonly Outcome[],
  books: ReadonlyMap<string, Books>,
): { whole: number; lacking: number } {
  const whole = outcomes.filter(({ failure }) => failure === null);
  const lacking = whole.filter(({ tenantId, requestId }) => !books.get(tenantId)?.charges.has(requestId!));
  return { whole: whole.length, lacking: lacking.length };
}
