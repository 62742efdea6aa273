import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { ASK_EVERY_MS } from './live-lists';
import { followStream } from './live-source';
import { pauseBeforeStreamMs } from './stream-pause';

interface Live<T> {
  queryKey: readonly string[];
  queryFn: () => Promise<T>;
  /** The path of its stream. */
  stream: string;
}

/**
 * The answer of `queryFn`, kept up to date by the stream at `stream`. While the stream is cut or silent, and while the
 * backend has no place for one, it is asked for instead. A tab has one stream at most, and none while it is hidden.
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
    let close: (() => void) | null = null;
    let next: number | undefined;
    const end = () => {
      close?.();
      close = null;
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
      close = followStream(`/console/api${stream}`, {
        onChange: (data) => {
          // An answer that is still under way is older than this one, and would replace it for good.
          void queries.cancelQueries({ queryKey }).then(() => {
            queries.setQueryData(queryKey, JSON.parse(data));
            setLive(true);
          });
        },
        // Renews the time of the numbers, and nothing else.
        onUnchanged: () => void queries.setQueryData(queryKey, (numbers: T | undefined) => numbers),
        onLost: () => setLive(false),
        onAsk: () => void queries.refetchQueries({ queryKey }),
      });
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
