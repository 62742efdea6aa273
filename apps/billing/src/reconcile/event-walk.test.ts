import type { AdmissionStore } from '@tollgate/admission';
import type { EventRange } from '@tollgate/contracts';
import type { Requests } from '@tollgate/messaging';
import { useTestDatabase } from '@tollgate/testing';
import { charge, useBilling } from '../testing/billing.fixture';
import { Charges } from './charges';
import { EventWalk } from './event-walk';
import { Findings } from './findings';

// test/reconcile compares with the real metering of this version.
const database = useTestDatabase();
const billing = useBilling(database);

it('a metering of an earlier version, which gives no details of events, is no difference', async () => {
  const tenantId = await billing.tenant(100);
  const served = [1n, 2n].map((nanos) => charge(tenantId, nanos));
  await billing.gatherer.gather(served);
  const charges = new Charges(billing.dataSource);
  let changed = '';
  const answers: Record<string, (range: EventRange) => Promise<object>> = {
    'metering.events.digest': async ({ after }) => {
      const totals = await charges.digest({ after, until: null });
      return { ...totals, digest: changed || totals.digest, detailsDigest: undefined, end: null };
    },
    'metering.events.list': async ({ after, until = null, limit }) => {
      const lines = await charges.list({ after, until }, limit);
      const data = lines.map(({ id, costNanos }) => ({ id, tenantId, costNanos: changed || costNanos }));
      return { data, end: null };
    },
  };
  const services = { request: (subject: string, range: EventRange) => answers[subject]!(range) } as unknown as Requests;
  const differences = async () => {
    const findings = new Findings();
    await new EventWalk(services, {} as AdmissionStore, charges, findings, new AbortController().signal).run('');
    return findings.report().differences;
  };
  expect(await differences()).toEqual([]);
  changed = '1';
  expect(await differences()).toMatchObject([
    { ids: [served[1]!.id], expected: `1 nanos of ${tenantId}`, actual: `2 nanos of ${tenantId}` },
  ]);
});
