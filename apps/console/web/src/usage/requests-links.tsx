import { defaultStringifySearch, useRouter } from '@tanstack/react-router';
import type { MouseEvent, ReactNode } from 'react';
import { count } from '../parts/format';
import { useTenant } from '../backend/me';
import type { RequestsSearch } from '../pages/requests';

/**
 * A table whose rows lead to their requests. It has one handler for all of them: with a link of the router in each of a
 * few hundred rows, the table is shown later. The browser still opens the links in another tab.
 */
export function RequestsLinks({ children }: { children: ReactNode }) {
  const { id } = useTenant();
  const router = useRouter();
  const requests = { to: '/t/$tenantId/requests', params: { tenantId: id } } as const;
  const open = (event: MouseEvent<HTMLElement>) => {
    const link = (event.target as Element).closest<HTMLAnchorElement>('a.whole-row');
    const isForBrowser = event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey;
    if (link === null || isForBrowser) return;
    event.preventDefault();
    void router.navigate({ ...requests, search: router.options.parseSearch(link.search) as never });
  };
  return (
    <div onClick={open} onPointerEnter={() => void router.preloadRoute(requests)}>
      {children}
    </div>
  );
}

/** The number of requests, within RequestsLinks. It fills its row, so that each cell leads to them. */
export function RequestsLink(of: {
  tenantId: string;
  requests: number;
  search: RequestsSearch;
  /** What the link leads to, if it is more than these requests. */
  label?: string;
  /** Shown on hover over the row, which the link covers. */
  title?: string;
}) {
  const { tenantId, requests, search, label = `${requests} requests: show them`, title } = of;
  return (
    <a
      className="whole-row mantine-focus-auto"
      title={title}
      href={`/console/t/${tenantId}/requests${defaultStringifySearch(search)}`}
      aria-label={label}
    >
      {count(requests)}
    </a>
  );
}
