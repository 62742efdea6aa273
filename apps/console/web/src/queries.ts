import { QueryClient } from '@tanstack/react-query';
import { ApiFailure } from './api';

const STALE_MS = 5_000;
const MAX_RETRIES = 2;

/** The answers of the backend, for all pages and for the router. */
export const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: STALE_MS,
      // Only what may pass by itself is asked again.
      retry: (failures, error) =>
        failures < MAX_RETRIES && error instanceof ApiFailure && (error.status === 0 || error.status >= 500),
    },
  },
});
