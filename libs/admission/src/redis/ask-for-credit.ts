import type { ReplyOf, RequestOf, Subject } from '@tollgate/contracts';
import { logger } from '@tollgate/runtime';
import { parseBalanceUpdate } from '../balance-update';
import type { MonthSpent } from '../admission-store';
import type { AskForCredit } from './credit-restorer';

/** The longest wait for the books within a request. After it the request gets 503 and may be repeated. */
const ASK_DEADLINE_MS = 2_000;
/** The clocks of services may differ by this much. This near the end of a month, both months are requested. */
const MAX_CLOCK_SKEW_MS = 5 * 60_000;
/**
 * Pages of keys. If a tenant used more than 50,000 keys in a month, the other keys’ budgets restart at zero spent, and
 * a warning is logged.
 */
const MAX_PAGES = 10;

/** The part of the messages seam that is needed here. */
export interface Requests {
  request<S extends Subject>(subject: S, request: RequestOf<S>, options?: { deadlineMs?: number }): Promise<ReplyOf<S>>;
}

/**
 * For `onUnknownTenant` of `RedisAdmissionStore`: asks billing for the tenant's credit, and metering for what it has
 * spent in this month. Neither knows what was settled and has not reached them yet. That amount can be spent again.
 */
export function askForCredit(messages: Requests, now: () => number = Date.now): AskForCredit {
  return async (tenantId) => {
    const [update, spent] = await Promise.all([
      messages.request('billing.credit.news', { tenantId }, { deadlineMs: ASK_DEADLINE_MS }),
      askForSpent(messages, tenantId, now),
    ]);
    if (!update) return null;
    return { update: parseBalanceUpdate(update), spent };
  };
}

/**
 * Asks metering for what a tenant has spent in this month, or in two months near the end of one. Rejects when metering
 * does not answer.
 */
export function askForSpent(messages: Requests, tenantId: string, now: () => number = Date.now): Promise<MonthSpent[]> {
  const months = [now() - MAX_CLOCK_SKEW_MS, now() + MAX_CLOCK_SKEW_MS].map((ms) =>
    new Date(ms).toISOString().slice(0, 7),
  );
  return Promise.all([...new Set(months)].map((month) => monthSpent(messages, tenantId, month)));
}

async function monthSpent(messages: Requests, tenantId: string, month: string): Promise<MonthSpent> {
  const keys: { keyId: string; nanos: bigint }[] = [];
  let tenantNanos = 0n;
  let after: string | undefined;
  for (let page = 0; page < MAX_PAGES; page++) {
    const reply = await messages.request(
      'metering.spent',
      { tenantId, month, ...(after === undefined ? {} : { after }) },
      { deadlineMs: ASK_DEADLINE_MS },
    );
    tenantNanos = BigInt(reply.tenantNanos);
    for (const { keyId, nanos } of reply.keys) keys.push({ keyId, nanos: BigInt(nanos) });
    if (reply.nextCursor === null) return { month, tenantNanos, keys };
    after = reply.nextCursor;
  }
  logger('admission').warn(
    { tenantId, month, keysRestored: keys.length },
    'a tenant used more inference keys this month than are restored: the other keys’ budgets restart at zero spent',
  );
  return { month, tenantNanos, keys };
}
