import type { AdmissionStore } from '@tollgate/admission';
import { newId, type EventLine, type EventRange } from '@tollgate/contracts';
import type { Requests } from '@tollgate/messaging';
import { useTestDatabase } from '@tollgate/testing';
import { charge, useBilling } from '../testing/billing.fixture';
import { Charges } from './charges';
import { EventWalk } from './event-walk';
import { Findings } from './findings';

// test/reconcile compares with the real metering of this version.
const database = useTestDatabase();
describe('the walk over the events', () => {
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
    const services = {
      request: (subject: string, range: EventRange) => answers[subject]!(range),
    } as unknown as Requests;
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

  it('an event of a tenant whose holds cannot be read is named, and the walk goes on', async () => {
    const [broken, owing] = [newId('ten'), newId('ten')];
    const events: EventLine[] = [broken, owing].map((tenantId) => ({ id: newId('req'), tenantId, costNanos: '1' }));
    const digest = { events: 2, costNanos: '2', digest: 'none', end: null };
    const services = {
      request: async (subject: string) => (subject === 'metering.events.digest' ? digest : { data: events, end: null }),
    } as unknown as Requests;
    let unreadable: string | undefined = 'not ours';
    const admission = {
      holds: async ({ tenantId }: { tenantId: string }) => {
        if (tenantId === broken) throw new Error('not ours');
        return [{ id: events[1]!.id, state: 'settled' }];
      },
      snapshot: async () => [{ unreadable }],
    } as unknown as AdmissionStore;
    const walk = async () => {
      const findings = new Findings();
      const { signal } = new AbortController();
      await new EventWalk(services, admission, new Charges(billing.dataSource), findings, signal).run('');
      return findings.report().differences.filter(({ tenantId }) => [broken, owing].includes(tenantId));
    };
    expect(await walk()).toMatchObject([{ check: 'every event is charged', tenantId: broken, ids: [events[0]!.id] }]);
    // A store that does not answer says nothing about the tenant.
    unreadable = undefined;
    await expect(walk()).rejects.toThrow('not ours');
  });
});
