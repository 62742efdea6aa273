import { createRootRoute, createRoute, createRouter, lazyRouteComponent, Outlet } from '@tanstack/react-router';
import { BrokenPage } from './parts/failure';
import { Home } from './shell/home';
import type { AuditSearch } from './pages/audit';
import type { RequestsSearch } from './pages/requests';
import { NotFound } from './shell/not-found';
import { queries } from './backend/queries';
import { overviewQuestion, usageQuestion, type UsageSearch } from './backend/questions';
import { Shell } from './shell/shell';

const REQUEST_FILTERS = [
  'model',
  'keyId',
  'outcome',
  'callerRequestId',
  'from',
  'to',
  'request',
] as const satisfies readonly (keyof RequestsSearch)[];
const USAGE_FILTERS = [
  'days',
  'from',
  'to',
  'by',
  'step',
  'model',
  'keyId',
] as const satisfies readonly (keyof UsageSearch)[];

const AUDIT_FILTERS = ['action', 'author', 'from', 'to'] as const satisfies readonly (keyof AuditSearch)[];

/** The texts of the query string that a page knows. The router reads digits as numbers. */
const textsOf = <K extends string>(search: Record<string, unknown>, names: readonly K[]): Partial<Record<K, string>> =>
  Object.fromEntries(
    names.flatMap((name) => {
      const value = search[name];
      return typeof value === 'string' || typeof value === 'number' ? [[name, String(value)]] : [];
    }),
  ) as Partial<Record<K, string>>;

const auditSearch = (search: Record<string, unknown>): AuditSearch => textsOf(search, AUDIT_FILTERS);

const root = createRootRoute({ component: Outlet, notFoundComponent: NotFound });
const signIn = createRoute({
  getParentRoute: () => root,
  path: '/sign-in',
  component: lazyRouteComponent(() => import('./pages/sign-in'), 'SignIn'),
});
const invitation = createRoute({
  getParentRoute: () => root,
  path: '/invitation',
  component: lazyRouteComponent(() => import('./pages/invitation'), 'Invitation'),
});
const forgotPassword = createRoute({
  getParentRoute: () => root,
  path: '/forgot-password',
  component: lazyRouteComponent(() => import('./pages/forgot-password'), 'ForgotPassword'),
});
const resetPassword = createRoute({
  getParentRoute: () => root,
  path: '/reset-password',
  component: lazyRouteComponent(() => import('./pages/reset-password'), 'ResetPassword'),
});
/** Everything that needs a session. */
const shell = createRoute({ getParentRoute: () => root, id: 'shell', component: Shell });
const home = createRoute({ getParentRoute: () => shell, path: '/', component: Home });
const account = createRoute({
  getParentRoute: () => shell,
  path: '/account',
  component: lazyRouteComponent(() => import('./pages/account'), 'Account'),
});
const tenant = createRoute({ getParentRoute: () => shell, path: '/t/$tenantId' });
const overview = createRoute({
  getParentRoute: () => tenant,
  path: '/overview',
  // The page takes the answer from the cache, and shows an error itself.
  loader: ({ params }) => void queries.prefetchQuery(overviewQuestion(params.tenantId)),
  component: lazyRouteComponent(() => import('./pages/overview'), 'OverviewPage'),
});
const usage = createRoute({
  getParentRoute: () => tenant,
  path: '/usage',
  validateSearch: (search: Record<string, unknown>): UsageSearch => textsOf(search, USAGE_FILTERS),
  loaderDeps: ({ search }) => search,
  loader: ({ params, deps }) => void queries.prefetchQuery(usageQuestion(params.tenantId, deps)),
  component: lazyRouteComponent(() => import('./pages/usage'), 'UsagePage'),
});
const requests = createRoute({
  getParentRoute: () => tenant,
  path: '/requests',
  validateSearch: (search: Record<string, unknown>): RequestsSearch => textsOf(search, REQUEST_FILTERS),
  component: lazyRouteComponent(() => import('./pages/requests'), 'RequestsPage'),
});
const keys = createRoute({
  getParentRoute: () => tenant,
  path: '/keys',
  component: lazyRouteComponent(() => import('./pages/keys'), 'KeysPage'),
});
const credit = createRoute({
  getParentRoute: () => tenant,
  path: '/credit',
  component: lazyRouteComponent(() => import('./pages/credit'), 'CreditPage'),
});
const receipt = createRoute({
  getParentRoute: () => tenant,
  path: '/credit/$entryId',
  component: lazyRouteComponent(() => import('./pages/receipt'), 'ReceiptPage'),
});
const models = createRoute({
  getParentRoute: () => tenant,
  path: '/models',
  component: lazyRouteComponent(() => import('./pages/models'), 'ModelsPage'),
});
const tokens = createRoute({
  getParentRoute: () => tenant,
  path: '/settings/tokens',
  component: lazyRouteComponent(() => import('./pages/tokens'), 'TokensPage'),
});
const members = createRoute({
  getParentRoute: () => tenant,
  path: '/settings/members',
  component: lazyRouteComponent(() => import('./pages/members'), 'MembersPage'),
});
const budgets = createRoute({
  getParentRoute: () => tenant,
  path: '/settings/budgets',
  component: lazyRouteComponent(() => import('./pages/budgets'), 'BudgetsPage'),
});
const audit = createRoute({
  getParentRoute: () => tenant,
  path: '/settings/audit',
  validateSearch: auditSearch,
  component: lazyRouteComponent(() => import('./pages/audit'), 'TenantAuditPage'),
});
const invoice = createRoute({
  getParentRoute: () => tenant,
  path: '/invoices/$number',
  component: lazyRouteComponent(() => import('./pages/invoice'), 'InvoicePage'),
});
const operatorInvoices = createRoute({
  getParentRoute: () => shell,
  path: '/operator/invoices',
  component: lazyRouteComponent(() => import('./pages/operator-invoices'), 'OperatorInvoicesPage'),
});
const operatorPlans = createRoute({
  getParentRoute: () => shell,
  path: '/operator/plans',
  component: lazyRouteComponent(() => import('./pages/operator-plans'), 'OperatorPlansPage'),
});
const operatorAudit = createRoute({
  getParentRoute: () => shell,
  path: '/operator/audit',
  validateSearch: auditSearch,
  component: lazyRouteComponent(() => import('./pages/audit'), 'OperatorAuditPage'),
});
const operatorTenants = createRoute({
  getParentRoute: () => shell,
  path: '/operator/tenants',
  component: lazyRouteComponent(() => import('./pages/operator-tenants'), 'OperatorTenantsPage'),
});
const operatorPeople = createRoute({
  getParentRoute: () => shell,
  path: '/operator/people',
  component: lazyRouteComponent(() => import('./pages/operator-people'), 'OperatorPeoplePage'),
});
const operatorFleet = createRoute({
  getParentRoute: () => shell,
  path: '/operator/fleet',
  component: lazyRouteComponent(() => import('./pages/operator-fleet'), 'OperatorFleetPage'),
});

export const router = createRouter({
  basepath: '/console',
  routeTree: root.addChildren([
    signIn,
    invitation,
    forgotPassword,
    resetPassword,
    shell.addChildren([
      home,
      account,
      tenant.addChildren([
        overview,
        usage,
        requests,
        keys,
        credit,
        receipt,
        models,
        tokens,
        members,
        budgets,
        audit,
        invoice,
      ]),
      operatorTenants,
      operatorPeople,
      operatorFleet,
      operatorInvoices,
      operatorPlans,
      operatorAudit,
    ]),
  ]),
  defaultPreload: 'intent',
  defaultErrorComponent: BrokenPage,
});

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router;
  }
}
