import { MutationCache, QueryCache, QueryClient } from '@tanstack/react-query';
import { ApiFailure, isSignedOut } from './api';

/** The question of who is signed in (`me.ts`). */
export const ME = ['me'] as const;

const STALE_MS = 5_000;
const MAX_RETRIES = 2;

/** The next call after the end of a session asks who is signed in. The shell then leads to the sign-in, and back. */
function onError(error: unknown): void {
  if (isSignedOut(error)) void queries.invalidateQueries({ queryKey: ME });
}

/** The answers of the backend, for all pages and for the router. */
export const queries = new QueryClient({
  queryCache: new QueryCache({
    onError: (error, { queryKey }) => {
      // It would ask itself without end.
      if (queryKey[0] !== ME[0]) onError(error);
    },
  }),
  mutationCache: new MutationCache({ onError }),
  // Without a connection, a call fails at once. By default it would wait for one: a write would be made when nobody
  // looks, and its secret would never be shown.
  defaultOptions: {
    mutations: { networkMode: 'always' },
    queries: {
      networkMode: 'always',
      // Off by default in this mode.
      refetchOnReconnect: true,
      staleTime: STALE_MS,
      // Only a failure that may pass by itself is retried.
      retry: (failures, error) =>
        failures < MAX_RETRIES && error instanceof ApiFailure && (error.status === 0 || error.status >= 500),
    },
  },
});
