import type { UsageEvent } from '@tollgate/contracts';
import type { Progress, SettleResult } from '../admission-store';
import { nanos } from './json-arguments';

/** What was delivered, as `progress` takes it. */
export function tuple(delivered: Progress['delivered']): (number | string)[] | false {
  if (!delivered) return false;
  const { promptTokens, cachedTokens, completionTokens, costNanos } = delivered;
  return [promptTokens, cachedTokens, completionTokens, nanos(costNanos)];
}

/** What `settle` answers for one hold. */
export function settleResult(code: string, record: string | null, event: UsageEvent): SettleResult | RangeError {
  if (code === 'over_hold')
    return new RangeError(`the cost of ${event.id}, ${event.costNanos} nanos, is above its hold`);
  if (code === 'forbidden' || code === 'lost') return { kind: code };
  if (code === 'settled') return { kind: 'settled', repeated: false, event };
  return { kind: 'settled', repeated: true, event: JSON.parse(record!) as UsageEvent };
}
