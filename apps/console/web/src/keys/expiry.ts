const DAY_MS = 24 * 60 * 60_000;

/** The choices of how long a credential lives, in days. */
export const LIFETIMES = [
  { value: 'never', label: 'never' },
  { value: '30', label: 'in 30 days' },
  { value: '90', label: 'in 90 days' },
  { value: '365', label: 'in a year' },
];

/** The instant of a choice; null: never. */
export const expiryOf = (lifetime: string): string | null =>
  lifetime === 'never' ? null : new Date(Date.now() + Number(lifetime) * DAY_MS).toISOString();
