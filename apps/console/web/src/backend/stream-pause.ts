/**
 * An answer is this old when its stream begins, so that the backend does not compute both while the page loads. With
 * the look of the stream, its numbers are at most two seconds old.
 */
const FIRST_LOOK_MS = 1_000;

/** From now to the beginning of a stream. `answeredAtMs`: 0 without an answer. */
export const pauseBeforeStreamMs = (answeredAtMs: number, nowMs: number): number =>
  Math.min(FIRST_LOOK_MS, Math.max(0, answeredAtMs + FIRST_LOOK_MS - nowMs));
