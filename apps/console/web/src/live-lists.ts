/** An open page asks this often for what may change. A hidden tab does not ask. */
export const ASK_EVERY_MS = 2_000;

interface Asked {
  state: { data?: { pages: readonly unknown[] } | undefined };
}

/** All loaded pages of a list are asked for at once, so a longer list less often: one page every two seconds. */
export const askAllEveryMs = ({ state: { data } }: Asked): number =>
  Math.max(1, data?.pages.length ?? 1) * ASK_EVERY_MS;

/** Only while the first page alone is loaded: rows that arrive would move the older ones, which somebody reads. */
export const askFirstEveryMs = ({ state: { data } }: Asked): number | false =>
  (data?.pages.length ?? 1) > 1 ? false : ASK_EVERY_MS;
