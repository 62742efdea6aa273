import type { UsageEvent } from '@tollgate/contracts';
import type { AnswerRequest, ClaimLimits, RecallRequest, RecallResult, Settlement } from '../admission-store';
import { cappedNanos, monthOf } from '../amounts';
import { readRecall } from '../store-answers';
import type { Call, Connections } from './connections';
import { jsonTexts, numbers, texts } from './sql-arrays';

/** How often a process that sweeps looks for claims of idle tenants to forget. */
const FORGET_EVERY_MS = 5_000;
const MAX_FORGOTTEN = 1_000;

/** The settlements, durably and with their answers where they have one. */
export function settleCall(settlements: readonly Settlement[], nowMs: number | null, limits: ClaimLimits): Call {
  const events = settlements.map(({ event }) => event);
  const values = [nowMs, ...endArrays(events)];
  const withClaims = settlements.some(({ answer }) => answer);
  if (!withClaims)
    return { name: 'settle', text: 'SELECT * FROM end_holds(locked_us($1,$3),$2,$3,$4,$5,$6,$7)', values };
  return {
    name: 'settle_claims',
    text: 'SELECT * FROM settle_claims($1,$2,$3,$4,$5,$6,$7,$8,$9,$10)',
    values: [
      ...values,
      texts(settlements, ({ answer }) => answer?.claimId ?? ''),
      texts(settlements, ({ answer }) => answer?.sealed ?? ''),
      limits.maxAnswerChars,
    ],
  };
}

function endArrays(events: readonly UsageEvent[]): string[] {
  return [
    texts(events, (event) => event.id),
    texts(events, (event) => event.tenantId),
    numbers(events, (event) => cappedNanos(BigInt(event.costNanos))),
    numbers(events, (event) => event.promptTokens + event.completionTokens),
    numbers(events, (event) => monthOf(event.endedAt)),
    jsonTexts(events, (event) => event),
  ];
}

/** Claims of the PostgreSQL store, beside admission and settlement: recalled, and forgotten when they are old. */
export class Claims {
  private nextAtMs = 0;

  constructor(
    private readonly connections: Connections,
    private readonly limits: ClaimLimits,
    private readonly now: () => number | null,
  ) {}

  /** Flushes what it saw: an answer is not repeated before its settlement is on the disk. */
  async recall(requests: readonly RecallRequest[]): Promise<RecallResult[]> {
    if (requests.length === 0) return [];
    const rows = await this.connections.callDurablyIfAny({
      name: 'recall_batch',
      text: 'SELECT * FROM recall_batch($1,$2,$3,$4)',
      values: [
        this.now(),
        this.limits.keepMs,
        texts(requests, ({ tenantId }) => tenantId),
        texts(requests, ({ claimId }) => claimId),
      ],
    });
    const results = requests.map((): RecallResult => ({ kind: 'free' }));
    for (const [n, ...values] of rows) results[Number(n) - 1] = readRecall(values);
    return results;
  }

  /** Flushes as `recall` does. */
  async answers(requests: readonly AnswerRequest[]): Promise<(string | null)[]> {
    if (requests.length === 0) return [];
    const rows = await this.connections.callDurablyIfAny({
      name: 'claim_answers',
      text: 'SELECT * FROM claim_answers($1,$2,$3)',
      values: [
        texts(requests, ({ tenantId }) => tenantId),
        texts(requests, ({ claimId }) => claimId),
        texts(requests, ({ fingerprint }) => fingerprint),
      ],
    });
    const results = requests.map((): string | null => null);
    for (const [n, answer] of rows) results[Number(n) - 1] = answer!;
    return results;
  }

  /** Claims of tenants without requests. The claims of other tenants are forgotten at their admissions. */
  async forgetOld(): Promise<void> {
    if (performance.now() < this.nextAtMs) return;
    this.nextAtMs = performance.now() + FORGET_EVERY_MS;
    await this.connections.callInBackground({
      name: 'forget_claims',
      text: 'SELECT forget_claims($1,$2,$3)',
      values: [this.now(), this.limits.keepMs, MAX_FORGOTTEN],
    });
  }
}
