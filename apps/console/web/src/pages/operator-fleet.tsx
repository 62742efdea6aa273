import { Badge, SimpleGrid, Title } from '@mantine/core';
import type { Fleet, FleetBackend } from '../../../src/api/answers';
import { api } from '../backend/api';
import { Figure } from '../parts/figure';
import { count, Money, Time } from '../parts/format';
import { useLive } from '../backend/live';
import { usePerson } from '../backend/me';
import { Answer, DataTable, Empty, Page } from '../parts/page';
import { Reconcile } from './reconcile';

/** A stage that is this late needs an operator. */
const LATE_S = 60;

/** Operator → Fleet: whether everything runs, and whether the books agree. */
export function OperatorFleetPage() {
  const fleet = useLive({
    queryKey: ['operator', 'fleet'],
    queryFn: () => api.get<Fleet>('/operator/fleet'),
    stream: '/operator/live/fleet',
  });
  return (
    <Page title="Fleet" about="All tenants and services together. Details are in the metrics.">
      <Answer of={fleet}>
        {(data) => (
          <>
            <Numbers of={data} />
            <Title order={2} size="h4">
              From the request to the ledger
            </Title>
            <DataTable
              label="Stages"
              head={['Stage', '#Waits', 'State']}
              rows={stagesOf(data).map(([stage, value, isFine]) => [
                stage,
                <span className="figures">{value}</span>,
                <State isFine={isFine} />,
              ])}
            />
            <Title order={2} size="h4">
              Backends
            </Title>
            {data.backends.length === 0 ? (
              <Empty text="tollgate.yaml names no backend." command="npx tollgate config check" />
            ) : (
              <DataTable
                label="Backends"
                head={['Backend', 'Models', '#Calls now', '#Seen by gateways', 'Health checks', 'Circuit', 'Service']}
                rows={data.backends.map(backendCells)}
              />
            )}
            <Reconcile latest={data.reconcile} />
          </>
        )}
      </Answer>
    </Page>
  );
}

function Numbers({ of }: { of: Fleet }) {
  const { currency } = usePerson();
  return (
    <SimpleGrid cols={{ base: 1, sm: 2, md: 3 }}>
      <Figure title="Requests, 24 hours" about={`${count(of.promptTokens + of.completionTokens)} tokens in and out.`}>
        {count(of.requests)}
      </Figure>
      <Figure title="Credit" about="The balances of all tenants.">
        <Money cents={Number(of.balanceCents)} currency={currency} />
      </Figure>
      <Figure title="Held" about={reservedBy(of.held)}>
        {of.held ? <Money nanos={of.held.nanos} currency={currency} /> : 'not known now'}
      </Figure>
      <Figure title="Settled" about="The cost of all requests that were ever served.">
        <Money nanos={of.settledNanos} currency={currency} />
      </Figure>
      <Figure title="Posted" about="Debited in the ledger.">
        <Money cents={Number(of.postedCents)} currency={currency} />
      </Figure>
      <Figure title="Not posted yet" about="Gathered, until a tenant has a whole cent.">
        <Money nanos={of.unpostedNanos} currency={currency} />
      </Figure>
    </SimpleGrid>
  );
}

function reservedBy(held: Fleet['held']): string {
  if (!held) return 'Reserved by requests that run now.';
  if (held.requests === 0) return 'No request runs now.';
  const running = held.requests === 1 ? 'the one request that runs' : `${count(held.requests)} requests that run`;
  return `Reserved by ${running} now.`;
}

const seconds = (value: number): string => (value < 1 ? 'nothing' : `${count(Math.round(value))} s`);

function stagesOf(of: Fleet): [stage: string, value: string, isFine: boolean][] {
  return [
    ['Charges on their way to billing', seconds(of.chargesAgeSeconds), of.chargesAgeSeconds < LATE_S],
    ['Debits of whole cents', seconds(of.postingOverdueSeconds), of.postingOverdueSeconds < LATE_S],
    ['Balance updates on their way to admission', seconds(of.updatesAgeSeconds), of.updatesAgeSeconds < LATE_S],
    ['Usage that no credit covers', seconds(of.uncoveredSeconds), of.uncoveredSeconds < LATE_S],
    ['Dead letters: usage events', count(of.openRefusedEvents), of.openRefusedEvents === 0],
    ['Dead letters: charges', count(of.rejectedCharges), of.rejectedCharges === 0],
  ];
}

function State({ isFine, bad = 'look at it' }: { isFine: boolean; bad?: string }) {
  return (
    <Badge variant="outline" color={isFine ? 'green' : 'red'}>
      {isFine ? 'fine' : bad}
    </Badge>
  );
}

function backendCells({ backend, models, inFlight, gateways, unhealthy, broken, drainedAt }: FleetBackend) {
  return [
    // The address of the simulator has a scheme and nothing else.
    backend === 'simulator:' ? 'simulator' : backend,
    models.join(', '),
    count(inFlight),
    gateways === 0 ? 'not asked yet' : count(gateways),
    <State isFine={unhealthy === 0} bad={`fail at ${unhealthy}`} />,
    <State isFine={broken === 0} bad={`open at ${broken}`} />,
    drainedAt === null ? (
      'in service'
    ) : (
      <>
        drained since <Time at={drainedAt} />
      </>
    ),
  ];
}
