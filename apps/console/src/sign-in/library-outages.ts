import { isOutage } from '@tollgate/postgres';
import { AsyncLocalStorage } from 'node:async_hooks';

/** The call of the library in progress, and the error of a statement in it that PostgreSQL did not answer. */
const calls = new AsyncLocalStorage<{ outage?: Error }>();

/**
 * Runs a call of the library. Where PostgreSQL does not answer, the library fails as if it had a mistake, or as if
 * nobody were signed in, and tells only its log why. Then this rejects with the error of the statement.
 * @param hasFailed whether an answer is one of a call that failed. A call may succeed although a statement failed
 */
export async function passingOutages<T>(
  call: () => Promise<T>,
  hasFailed: (answer: T) => boolean = () => false,
): Promise<T> {
  const made: { outage?: Error } = {};
  let answer: T;
  try {
    answer = await calls.run(made, call);
  } catch (error) {
    throw made.outage ?? error;
  }
  if (made.outage !== undefined && hasFailed(answer)) throw made.outage;
  return answer;
}

/** Whether the details of a line of the library's log are an outage in a call, whose caller logs it. */
export function noteOutage(details: readonly unknown[]): boolean {
  const [call, outage] = [calls.getStore(), details.find(isErrorOfOutage)];
  if (!call || outage === undefined) return false;
  call.outage = outage;
  return true;
}

const isErrorOfOutage = (detail: unknown): detail is Error => isOutage(detail);
