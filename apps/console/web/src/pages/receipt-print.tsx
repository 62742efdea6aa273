import { Button, Text } from '@mantine/core';
import type { InfiniteData, UseInfiniteQueryResult } from '@tanstack/react-query';
import { useEffect, useState } from 'react';

/** Pages of a list that are loaded for paper, of 50 rows each. */
const MAX_PAGES = 40;

type Pages = UseInfiniteQueryResult<InfiniteData<unknown>>;

const isMissing = ({ data, hasNextPage }: Pages): boolean => hasNextPage && (data?.pages.length ?? 0) < MAX_PAGES;

/** Prints a list with all its rows, or as many as are loaded for paper. If loading fails, nothing is printed. */
export function PrintAllButton({ of }: { of: Pages }) {
  const [state, setState] = useState<'idle' | 'loading' | 'loaded'>('idle');
  const isComplete = !isMissing(of);
  // After the page shows what was loaded.
  useEffect(() => {
    if (state !== 'loaded' || !isComplete) return;
    setState('idle');
    window.print();
  }, [state, isComplete]);
  const load = async () => {
    setState('loading');
    let at = of;
    while (isMissing(at)) {
      at = await at.fetchNextPage();
      // The page shows the error.
      if (at.isError) return setState('idle');
    }
    setState('loaded');
  };
  return (
    <Button className="screen" variant="default" loading={state !== 'idle'} onClick={() => void load()}>
      Print or save as PDF
    </Button>
  );
}

/** On paper, too: the menu of a browser prints what is loaded. */
export const Incomplete = ({ of, text }: { of: Pages; text: string }) =>
  of.hasNextPage ? <Text size="sm">{text}</Text> : null;
