/** One complete server-sent event, and the number of its tokens. */
export interface Frame {
  event: string;
  tokens: number;
}

/** A successful answer, before it is written. Plain bodies are ASCII. */
export type Reply = { promptTokens: number } & (
  { stream: false; body: string; tokens: number } | { stream: true; frames: Iterable<Frame> }
);

export const DONE: Frame = { event: 'data: [DONE]\n\n', tokens: 0 };

/** The backend's name in `system_fingerprint`. A gateway must not pass it on, nor those in ids, `model` and headers. */
export const FINGERPRINT = 'fp_simulator';
let replies = 0;

/** Unique in the process. */
export function newReplyId(prefix: 'chatcmpl' | 'cmpl' | 'call' | 'req'): string {
  return `${prefix}-sim${(++replies).toString(36).padStart(8, '0')}`;
}

/** The backend's own name of a model, as providers answer with a dated version of the requested name. */
export function ownModelName(model: string): string {
  return `simulated-${model}`;
}

/** Takes a frame of each stream in turn until all have ended. So several choices stream at once. */
export function* interleave(streams: Iterator<Frame, unknown>[]): Generator<Frame> {
  let running = streams;
  while (running.length > 0) {
    const next: Iterator<Frame, unknown>[] = [];
    for (const stream of running) {
      const { value, done } = stream.next();
      if (done) continue;
      yield value;
      next.push(stream);
    }
    running = next;
  }
}

/** Unix time in seconds. */
export function createdNow(): number {
  return Math.floor(Date.now() / 1_000);
}
