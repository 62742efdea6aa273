import type { RequestsSearch } from '../pages/requests';

const STEP_MS = { hour: 3_600_000, day: 86_400_000 };

interface Chosen {
  step: 'day' | 'hour';
  /** What the bars are divided by. */
  by?: 'model' | 'key' | undefined;
  model?: string | undefined;
  keyId?: string | undefined;
}

/**
 * The filters of the requests behind a part of a bar. The requests of "others" are a part of the requests of their
 * step: no filter excludes the named ones.
 */
export function requestsOf(
  { at, name }: { at: string; name: string | null },
  { step, by, model, keyId }: Chosen,
): RequestsSearch {
  return {
    from: at,
    to: new Date(Date.parse(at) + STEP_MS[step]).toISOString(),
    ...(model !== undefined && { model }),
    ...(keyId !== undefined && { keyId }),
    ...(name !== null && by === 'model' && { model: name }),
    ...(name !== null && by === 'key' && { keyId: name }),
  };
}
