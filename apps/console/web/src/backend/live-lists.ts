/** An open page asks this often for what may change. A hidden tab does not ask. */
export const ASK_EVERY_MS = 2_000;

interface PagedQuery {
  state: { data?: { pages: readonly unknown[] } | undefined };
}

/**
 * All loaded pages of a list are requested together, so a longer list is renewed less often: one page every two
 * seconds.
 */
export const askAllEveryMs = ({ state: { data } }: PagedQuery): number =>
  Math.max(1, data?.pages.length ?? 1) * ASK_EVERY_MS;

/** Only while no page but the first is loaded: new rows would move the older ones, which somebody may be reading. */
export const askFirstEveryMs = ({ state: { data } }: PagedQuery): number | false =>
  (data?.pages.length ?? 1) > 1 ? false : ASK_EVERY_MS;
