import { MAX_ROLLUP_AUDIT_MS, UnavailableError, type ReplyOf, type RequestOf } from '@tollgate/contracts';
import type { Requests } from '@tollgate/messaging';
import { delayUntilAborted, unlessAborted } from '@tollgate/runtime';

/** Each request asks for a bounded part. On a busy machine it may still take a while. */
const DEADLINE_MS = 9_000;
/** The first try of an audit. A process of metering that is killed meanwhile never answers. */
const FIRST_AUDIT_MS = 60_000;
/** A run of minutes survives a moment without the service. An audit's tries share its time, which one may use up. */
const MAX_TRIES = 4;
const AGAIN_AFTER_MS = 1_000;

type Subject =
  | 'auth.tenants.get'
  | 'metering.events.digest'
  | 'metering.events.list'
  | 'metering.months.list'
  | 'metering.months.confirm'
  | 'metering.rollups.audit'
  | 'metering.rejected.audit';

/**
 * Asks metering about its events, or auth about a tenant. Rejects with UnavailableError when the service does not
 * answer repeatedly, and with the reason of `stopped` as soon as it is aborted.
 */
export async function askAgain<S extends Subject>(
  services: Requests,
  subject: S,
  request: RequestOf<S>,
  stopped: AbortSignal,
): Promise<ReplyOf<S>> {
  const isAudit = subject === 'metering.rollups.audit';
  const endMs = performance.now() + MAX_ROLLUP_AUDIT_MS;
  for (let attempt = 1; ; attempt++) {
    stopped.throwIfAborted();
    const leftMs = Math.ceil(endMs - performance.now());
    const auditMs = attempt === 1 ? FIRST_AUDIT_MS : leftMs;
    const deadlineMs = isAudit ? auditMs : DEADLINE_MS;
    try {
      return await unlessAborted(stopped, services.request(subject, request, { deadlineMs }));
    } catch (error) {
      const isLast = attempt === MAX_TRIES || performance.now() + AGAIN_AFTER_MS >= endMs;
      if (!(error instanceof UnavailableError) || isLast) throw error;
      await delayUntilAborted(AGAIN_AFTER_MS, stopped);
    }
  }
}
