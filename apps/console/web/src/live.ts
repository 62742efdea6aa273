import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { pauseBeforeStreamMs } from './stream-pause';

/** Without a stream, the page asks this often. */
const ASK_EVERY_MS = 2_000;
/** A stream that the backend ended is tried again after this time. */
const AGAIN_MS = 10_000;

interface Live<T> {
  queryKey: readonly string[];
  queryFn: () => Promise<T>;
  /** The path of its stream. */
  stream: string;
}

/**
 * The answer of `queryFn`, kept up to date by the stream at `stream`. While the stream is cut, and while the backend
 * has no place for one, it is asked for instead. A tab has one stream at most, and none while it is hidden.
 */
export function useLive<T>({ queryKey, queryFn, stream }: Live<T>) {
  const queries = useQueryClient();
  const [isLive, setLive] = useState(false);
  const name = queryKey.join(' ');
  const answer = useQuery({
    queryKey,
    queryFn,
    refetchInterval: isLive ? false : ASK_EVERY_MS,
  });
  // The backend would compute both at the same time.
  const isAnswered = !answer.isPending;
  useEffect(() => {
    if (!isAnswered) return;
    let source: EventSource | null = null;
    let next: number | undefined;
    const end = () => {
      source?.close();
      source = null;
      clearTimeout(next);
      setLive(false);
    };
    const begin = () => {
      end();
      if (document.hidden) return;
      const answeredAtMs = queries.getQueryState(queryKey)?.dataUpdatedAt ?? 0;
      next = window.setTimeout(open, pauseBeforeStreamMs(answeredAtMs, Date.now()));
    };
    const open = () => {
      source = new EventSource(`/console/api${stream}`);
      source.onmessage = ({ data }: MessageEvent<string>) => {
        // An answer that is still under way is older than this one, and would replace it for good.
        void queries.cancelQueries({ queryKey }).then(() => {
          queries.setQueryData(queryKey, JSON.parse(data));
          setLive(true);
        });
      };
      source.onerror = () => {
        setLive(false);
        // The browser itself opens a stream again that was cut, but not one that was refused.
        if (source?.readyState === EventSource.CLOSED) next = window.setTimeout(begin, AGAIN_MS);
      };
    };
    begin();
    document.addEventListener('visibilitychange', begin);
    return () => {
      document.removeEventListener('visibilitychange', begin);
      end();
    };
    // The key is an array that is new in each render; its name is not.
  }, [name, stream, queries, isAnswered]);
  return answer;
}
