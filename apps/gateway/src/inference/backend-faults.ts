import type { TokenCounts } from '@tollgate/contracts';
import { Counter, logger, metrics } from '@tollgate/runtime';
import type { ReportedUsage } from '../upstream/wire/usage-field';

/** Each fault of a backend is logged once in this time. */
const LOG_EVERY_MS = 60_000;

const disbelieved = new Counter({
  name: 'tollgate_usage_disbelieved_total',
  help: 'Implausible token counts of a backend, by what: prompt, completion, form. Our own count was charged',
  labelNames: ['model', 'backend', 'what'] as const,
  registers: [metrics],
});
const overlong = new Counter({
  name: 'tollgate_overlong_answers_total',
  help: 'Answers of a backend beyond the requested limit. They were cut at the limit or refused',
  labelNames: ['model', 'backend'] as const,
  registers: [metrics],
});
/** By fault, model and backend. The configuration bounds the size of this map. */
const loggedAtMs = new Map<string, number>();

/** The faulty backend, and the request that showed the fault. */
export interface AtFault {
  model: string;
  backend: string;
  requestId: string;
  id: string;
}

/** Counts and logs a usage report that was not believed. */
export function noteDisbelief(
  what: 'prompt' | 'completion' | 'form',
  where: AtFault,
  counts: { reported: ReportedUsage; own: Partial<TokenCounts> },
): void {
  disbelieved.inc({ model: where.model, backend: where.backend, what });
  warn('a backend reported implausible usage', where, { what, ...counts });
}

/** Counts and logs an answer beyond its limit. */
export function noteOverlong(where: AtFault): void {
  overlong.inc({ model: where.model, backend: where.backend });
  warn('a backend generated more than requested', where, {});
}

function warn(message: string, where: AtFault, more: { what?: string } & object): void {
  const key = [message, more.what, where.model, where.backend].join(' ');
  const nowMs = performance.now();
  if (nowMs - (loggedAtMs.get(key) ?? -Infinity) < LOG_EVERY_MS) return;
  loggedAtMs.set(key, nowMs);
  logger('gateway').warn({ ...where, ...more }, message);
}
