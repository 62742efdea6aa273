import type { ReplyOf, RequestOf, Subject } from '@tollgate/contracts';
import { logger } from '@tollgate/runtime';
import { parseBalanceUpdate } from '../balance-update';
import type { MonthSpent } from '../admission-store';
import type { AskForCredit } from './credit-restorer';

/** What a request waits for the books at most; then it is answered 503 and may be tried again. */
const ASK_DEADLINE_MS = 2_000;
/** Clocks of services may differ by so much: so near the end of a month both months are asked for. */
const MAX_CLOCK_SKEW_MS = 5 * 60_000;
/**
 * Pages of keys; of a tenant that used more than 50,000 in a month the others' budgets begin anew, and the log says so.
 */
const MAX_PAGES = 10;

/** As much of the messages seam as it takes. */
export interface Requests {
  request<S extends Subject>(subject: S, request: RequestOf<S>, options?: { deadlineMs?: number }): Promise<ReplyOf<S>>;
}

/**
 * Asks billing for the credit of a tenant and metering for what it has spent in this month: for `RedisAdmissionStore`'s
 * `onUnknownTenant`. Neither knows what was settled and is still on its way to them: that much can be spent again.
 */
export function askForCredit(messages: Requests, now: () => number = Date.now): AskForCredit {
  return async (tenantId) => {
    const [news, spent] = await Promise.all([
      messages.request('billing.credit.news', { tenantId }, { deadlineMs: ASK_DEADLINE_MS }),
      askForSpent(messages, tenantId, now),
    ]);
    if (!news) return null;
    return { news: parseBalanceUpdate(news), spent };
  };
}

/**
 * Asks metering for what a tenant has spent in this month; in two of them near the end of one. Rejects when it does not
 * answer.
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
    'a tenant used more inference keys in a month than are restored: what the others spent in it does not count on their budgets',
  );
  return { month, tenantNanos, keys };
}
