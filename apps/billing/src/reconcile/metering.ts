import { UnavailableError, type ReplyOf, type RequestOf } from '@tollgate/contracts';
import type { Requests } from '@tollgate/messaging';
import { delay } from '@tollgate/runtime';

/** Each request asks for a bounded part. On a busy machine it may still take a while. */
const DEADLINE_MS = 9_000;
/** A run of minutes survives a moment without metering. */
const MAX_TRIES = 4;
const AGAIN_AFTER_MS = 1_000;

type Subject =
  | 'metering.events.digest'
  | 'metering.events.list'
  | 'metering.months.list'
  | 'metering.months.confirm'
  | 'metering.rollups.audit'
  | 'metering.rejected.audit';

/** Asks metering about its events. Rejects with UnavailableError when metering does not answer repeatedly. */
export async function askMetering<S extends Subject>(
  services: Requests,
  subject: S,
  request: RequestOf<S>,
): Promise<ReplyOf<S>> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await services.request(subject, request, { deadlineMs: DEADLINE_MS });
    } catch (error) {
      if (!(error instanceof UnavailableError) || attempt === MAX_TRIES) throw error;
      await delay(AGAIN_AFTER_MS);
    }
  }
}
