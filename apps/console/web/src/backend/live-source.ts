/**
 * A stream that sends nothing for this long is lost: the machine slept, or a proxy or network silently dropped it. The
 * backend sends an event at least every 4 s, plus the time of a look (`src/api/live/live-streams.ts`).
 */
const SILENT_MS = 10_000;
/** A stream that the backend ended, or that was lost, is tried again after this time. */
const AGAIN_MS = 10_000;
/**
 * A stream has sent its headers when it opens, so it extends no session later. The page asks this often beside it, much
 * more often than a session ends (`src/sign-in/better-auth.ts`).
 */
const EXTEND_EVERY_MS = 60 * 60 * 1_000;

interface Follower {
  /** New numbers, as JSON. */
  onChange: (data: string) => void;
  /** The last numbers are still true. */
  onUnchanged: () => void;
  /** Nothing tells of changes now. */
  onLost: () => void;
  /** Ask once: the answer extends the session. */
  onAsk: () => void;
}

/** Follows the stream at `url` until the function that it returns is called. */
export function followStream(url: string, { onChange, onUnchanged, onLost, onAsk }: Follower): () => void {
  let source: EventSource;
  let watch: ReturnType<typeof setTimeout>;
  let again: ReturnType<typeof setTimeout>;
  const lose = () => {
    close();
    again = setTimeout(open, AGAIN_MS);
    onLost();
  };
  const hear = () => {
    clearTimeout(watch);
    watch = setTimeout(lose, SILENT_MS);
  };
  const open = () => {
    source = new EventSource(url);
    // From now on: one that is never answered is lost, too.
    hear();
    source.onmessage = ({ data }) => {
      hear();
      onChange(data as string);
    };
    source.addEventListener('unchanged', () => {
      hear();
      onUnchanged();
    });
    source.onerror = () => {
      // The browser itself opens a stream again that was cut, but not one that was refused.
      if (source.readyState === EventSource.CLOSED) lose();
      else onLost();
    };
  };
  const close = () => {
    source.close();
    clearTimeout(watch);
    clearTimeout(again);
  };
  open();
  const asking = setInterval(onAsk, EXTEND_EVERY_MS);
  return () => {
    clearInterval(asking);
    close();
  };
}
