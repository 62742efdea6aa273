import { useInfiniteQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import type { KeyList } from '../../../src/api/answers';
import { api, queryOf } from './api';
import { useTenant } from './me';

const PAGE_ROWS = '200';
/** A choice offers the newest 5,000 keys. */
const MAX_PAGES = 25;

/** The keys of the tenant for a choice among them. They load when it is opened first. */
export function useKeyChoice() {
  const { id, path } = useTenant();
  const [isOpened, setOpened] = useState(false);
  const { data, error, hasNextPage, isFetching, fetchNextPage } = useInfiniteQuery({
    queryKey: ['keys', id, 'choice'],
    queryFn: ({ pageParam }) => api.get<KeyList>(path('keys') + queryOf({ after: pageParam, limit: PAGE_ROWS })),
    initialPageParam: '',
    getNextPageParam: ({ nextCursor }, pages) => (pages.length < MAX_PAGES ? nextCursor : null),
    enabled: isOpened,
  });
  useEffect(() => {
    if (isOpened && hasNextPage && !isFetching && error === null) void fetchNextPage();
  }, [isOpened, hasNextPage, isFetching, error, fetchNextPage]);
  const isLoading = isOpened && error === null && (data === undefined || hasNextPage);
  return {
    keys: data?.pages.flatMap((page) => page.data) ?? [],
    /** The properties of the field for the choice. */
    field: {
      searchable: true,
      /** More are found by typing. */
      limit: 50,
      onDropdownOpen: () => setOpened(true),
      nothingFoundMessage: error ? error.message : isLoading ? 'Loading…' : 'No such key',
    },
  };
}
