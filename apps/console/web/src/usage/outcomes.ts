import type { RecordedEvent } from '../../../src/api/answers';

/** How requests end, for people. */
export const OUTCOMES: readonly { value: RecordedEvent['outcome']; label: string }[] = [
  { value: 'complete', label: 'complete' },
  { value: 'client_closed', label: 'client left' },
  { value: 'upstream_error', label: 'model broke off' },
  { value: 'credit_ended', label: 'credit ended' },
  { value: 'expired', label: 'gateway died' },
];

export const outcomeLabel = (outcome: RecordedEvent['outcome']): string =>
  OUTCOMES.find(({ value }) => value === outcome)?.label ?? outcome;
