import {
  Alert,
  AppShell,
  Burger,
  Button,
  Center,
  Container,
  Divider,
  Group,
  Loader,
  Menu,
  Modal,
  NavLink,
  Select,
  Text,
  useComputedColorScheme,
  useMantineColorScheme,
} from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link, Navigate, Outlet, useLocation, useNavigate, useParams } from '@tanstack/react-router';
import { useEffect, useState, type ReactNode } from 'react';
import { api, isSignedOut, pathOf } from '../backend/api';
import { askedPage } from './asked-page';
import { Failure } from '../parts/failure';
import { useMe, usePerson } from '../backend/me';
import { Answer, Page } from '../parts/page';
import type { Me, TenantAction, TenantRow } from '../../../src/api/answers';

const TENANT_PAGES = [
  { to: '/t/$tenantId/overview', label: 'Overview', action: 'usage.read' },
  { to: '/t/$tenantId/usage', label: 'Usage', action: 'usage.read' },
  { to: '/t/$tenantId/requests', label: 'Requests', action: 'requests.read' },
  { to: '/t/$tenantId/keys', label: 'Keys', action: 'keys.read' },
  { to: '/t/$tenantId/credit', label: 'Credit', action: 'credit.read' },
  { to: '/t/$tenantId/models', label: 'Models', action: 'models.read' },
] as const satisfies readonly { to: string; label: string; action: TenantAction }[];
/** Without an action: it is the person's own, and needs no tenant. */
const SETTINGS_PAGES = [
  { to: '/t/$tenantId/settings/tokens', label: 'Management tokens', action: 'tokens.read' },
  { to: '/t/$tenantId/settings/members', label: 'Members', action: 'members.read' },
  { to: '/t/$tenantId/settings/budgets', label: 'Budgets', action: 'budgets.read' },
  { to: '/account', label: 'Sessions and passkeys', action: null },
  { to: '/t/$tenantId/settings/audit', label: 'Audit', action: 'audit.read' },
] as const satisfies readonly { to: string; label: string; action: TenantAction | null }[];
const OPERATOR_PAGES = [
  { to: '/operator/fleet', label: 'Fleet' },
  { to: '/operator/tenants', label: 'Tenants' },
  { to: '/operator/people', label: 'People' },
  { to: '/operator/invoices', label: 'Invoices' },
  { to: '/operator/plans', label: 'Plans and prices' },
  { to: '/operator/audit', label: 'Audit' },
] as const;

const HOME = '/';

/** Frame of all pages for people who are signed in: navigation, the choice of the tenant, the account. */
export function Shell() {
  const me = useMe();
  if (isSignedOut(me.error)) return <ToSignIn />;
  // A page that is shown stays, also while the person cannot be renewed: it may show a secret that is shown once.
  if (me.data) return <Frame />;
  if (me.error)
    return (
      <Container py="xl" component="main">
        <Failure error={me.error} retry={() => void me.refetch()} />
      </Container>
    );
  return (
    <Center h="100vh" component="main">
      <Loader aria-label="Loading" />
    </Center>
  );
}

/** The sign-in leads back to the page. */
function ToSignIn() {
  const [page] = useState(() => location.pathname + location.search);
  useEffect(() => askedPage.keep(page), [page]);
  return <Navigate to="/sign-in" replace />;
}

/** The tenant of the menu: the tenant of the page, or else of the last page that had one, or the person's first. */
function useMenuTenant(me: Me): string | undefined {
  const { tenantId } = useParams({ strict: false });
  const [last, setLast] = useState(tenantId);
  useEffect(() => {
    if (tenantId !== undefined) setLast(tenantId);
  }, [tenantId]);
  return tenantId ?? last ?? me.tenants[0]?.id;
}

function Frame() {
  const me = usePerson();
  const [isOpen, { toggle, close }] = useDisclosure(false);
  const tenantId = useMenuTenant(me);
  const { pathname } = useLocation();
  useEffect(() => {
    if (pathname !== HOME) askedPage.forget();
  }, [pathname]);
  return (
    <AppShell
      header={{ height: 56 }}
      navbar={{ width: 230, breakpoint: 'sm', collapsed: { mobile: !isOpen } }}
      padding="md"
    >
      <AppShell.Header>
        <a href="#page" className="skip">
          Skip to the page
        </a>
        <Group h="100%" px="md" justify="space-between" wrap="nowrap">
          <Group gap="sm" wrap="nowrap" miw={0}>
            <Burger opened={isOpen} onClick={toggle} hiddenFrom="sm" size="sm" aria-label="Navigation" />
            <Text fw={700} visibleFrom="xs">
              Tollgate
            </Text>
            <TenantChoice me={me} tenantId={tenantId} />
          </Group>
          <AccountMenu me={me} />
        </Group>
      </AppShell.Header>
      <AppShell.Navbar p="xs" aria-label="Pages" className={isOpen ? undefined : 'closed-menu'}>
        <Pages me={me} tenantId={tenantId} onChoice={close} />
      </AppShell.Navbar>
      <AppShell.Main id="page">
        <Container size="lg" px={0}>
          <AsOperator me={me}>
            <Outlet />
          </AsOperator>
        </Container>
      </AppShell.Main>
    </AppShell>
  );
}

/** The tenant of the page, if an operator sees it without being a member. */
function useForeign(me: Me, tenantId: string | undefined) {
  const isForeign = me.isOperator && tenantId !== undefined && !me.tenants.some(({ id }) => id === tenantId);
  const tenant = useQuery({
    queryKey: ['operator', 'tenant', tenantId],
    queryFn: () => api.get<TenantRow>(pathOf('operator', 'tenants', tenantId!)),
    enabled: isForeign,
  });
  return { isForeign, tenant };
}

/**
 * Says that the tenant of the page is not one of the person's own. The page waits for its name, so that nothing moves,
 * and a tenant that does not exist has no pages.
 */
function AsOperator({ me, children }: { me: Me; children: ReactNode }) {
  const { tenantId } = useParams({ strict: false });
  const { isForeign, tenant } = useForeign(me, tenantId);
  if (!isForeign) return children;
  if (!tenant.data)
    return (
      <Page title="Tenant">
        <Answer of={tenant}>{() => null}</Answer>
      </Page>
    );
  const { name, plan, status } = tenant.data;
  return (
    <>
      <Alert className="screen" variant="outline" color="orange" mb="md" title={name}>
        You see this tenant as an operator, with everything that its owner sees. Its plan is {plan}, and it is {status}.
        What you change here is in its audit log.
      </Alert>
      {children}
    </>
  );
}

function TenantChoice({ me, tenantId }: { me: Me; tenantId: string | undefined }) {
  const navigate = useNavigate();
  const { tenant } = useForeign(me, tenantId);
  if (me.tenants.length === 0) return null;
  const isOwn = tenantId === undefined || me.tenants.some(({ id }) => id === tenantId);
  const data = me.tenants.map(({ id, name }) => ({ value: id, label: name }));
  if (!isOwn) data.push({ value: tenantId, label: tenant.data?.name ?? `${tenantId.slice(0, 12)}…` });
  return (
    <Select
      aria-label="Tenant"
      size="xs"
      w={170}
      miw={0}
      allowDeselect={false}
      data={data}
      value={tenantId ?? null}
      placeholder="Tenant"
      onChange={(id) => id && void navigate({ to: '/t/$tenantId/overview', params: { tenantId: id } })}
    />
  );
}

function Pages({ me, tenantId, onChoice }: { me: Me; tenantId: string | undefined; onChoice: () => void }) {
  const { pathname } = useLocation();
  const tenant = me.tenants.find(({ id }) => id === tenantId);
  const may = (action: TenantAction) => me.isOperator || tenant?.actions.includes(action) === true;
  const linkTo = ({ to, label }: { to: string; label: string }) => (
    <NavLink
      key={to}
      component={Link}
      to={to}
      params={{ tenantId } as never}
      label={label}
      active={pathname.endsWith(to.replace('/t/$tenantId', ''))}
      onClick={onChoice}
    />
  );
  return (
    <>
      {tenantId !== undefined && TENANT_PAGES.filter(({ action }) => may(action)).map(linkTo)}
      <Divider my="xs" label="Settings" labelPosition="left" />
      {SETTINGS_PAGES.filter(({ action }) => action === null || (tenantId !== undefined && may(action))).map(linkTo)}
      {me.isOperator && (
        <>
          <Divider my="xs" label="Operator" labelPosition="left" />
          {OPERATOR_PAGES.map(linkTo)}
        </>
      )}
    </>
  );
}

function AccountMenu({ me }: { me: Me }) {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const { setColorScheme } = useMantineColorScheme();
  const scheme = useComputedColorScheme('light');
  const signOut = useMutation({
    mutationFn: () => api.post('/auth/sign-out'),
    onSuccess: async () => {
      queries.clear();
      await navigate({ to: '/sign-in' });
      // The next person to sign in must not land on this person's page.
      askedPage.forget();
    },
  });
  return (
    <Menu position="bottom-end" width={220}>
      <Modal opened={signOut.isError} onClose={signOut.reset} title="You are still signed in">
        <Failure error={signOut.error} retry={() => signOut.mutate()} />
      </Modal>
      <Menu.Target>
        {/* On a narrow screen the choice of the tenant gives way. */}
        <Button variant="default" size="xs" maw={160} flex="none">
          <Text span inherit truncate>
            {me.name}
          </Text>
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>{me.email}</Menu.Label>
        <Menu.Item component={Link} to="/account">
          Account and sessions
        </Menu.Item>
        <Menu.Item onClick={() => setColorScheme(scheme === 'dark' ? 'light' : 'dark')}>
          {scheme === 'dark' ? 'Light colours' : 'Dark colours'}
        </Menu.Item>
        <Menu.Item onClick={() => signOut.mutate()}>Sign out</Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
