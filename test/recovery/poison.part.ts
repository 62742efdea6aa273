import {
  newId,
  TOPICS,
  type Charge,
  type BalanceUpdate,
  type TenantUpdate,
  type Topic,
  type UsageEvent,
} from '@tollgate/contracts';
import { listDead } from '@tollgate/messaging';
import { eventually, onceServed } from '@tollgate/testing';
import type { Deployment, Replicas } from '../services/deployment';
import type { ServiceProcess } from '../services/service-process';
import { charge, balanceUpdate, usageEvent } from './events';
import { Deployed } from './deployed';
import { envelope, json, nested, unreadable } from './poison';
import { PoisonSender } from './poison-sender';

const TIMEOUT = { timeoutMs: 20_000, everyMs: 100 };

const POISONED: readonly Topic[] = ['usage-events', 'charges', 'credit-news', 'tenant-news'];

/** Poisoned messages of topics. Runs on one replica of each service but the gateway. */
export function poisonTests(deployment: Deployment, services: Replicas): void {
  let deployed: Deployed;
  let sender: PoisonSender | undefined;

  beforeAll(() => {
    deployed = new Deployed(deployment, services.gateway);
    sender = new PoisonSender(deployment);
  });
  afterAll(() => sender?.close());

  async function expectDead(
    topic: Topic,
    tenantId: string,
    expected: [string, Buffer | null, RegExp][],
    by: readonly ServiceProcess[],
  ) {
    const dead = await eventually(async () => {
      const { letters } = await listDead({ brokers: deployment.kafka.brokers, clientId: 'test' }, { topic });
      const own = letters.filter(({ key }) => key?.toString() === tenantId);
      expect(own).toHaveLength(expected.length);
      return own.sort((a, b) => Number(a.offset) - Number(b.offset));
    }, TIMEOUT);
    for (const [i, [name, value, reason]] of expected.entries()) {
      expect([name, dead[i]!.reason]).toEqual([name, expect.stringMatching(reason)]);
      expect(dead[i]).toMatchObject({
        topic,
        group: Object.keys(TOPICS[topic].groups)[0],
        partition: dead[0]!.partition,
      });
      expect(dead[i]!.value?.toString('hex')).toBe(value?.toString('hex'));
    }
    const line = new RegExp(`^tollgate_messages_dead_total\\{topic="${topic}",group="\\w+"\\} (\\d+)$`, 'gm');
    await eventually(async () => {
      const texts = await Promise.all(by.map((replica) => replica.metrics()));
      const counts = texts.flatMap((text) => [...text.matchAll(line)].map(([, count]) => Number(count)));
      expect(counts.reduce((sum, count) => sum + count, 0)).toBe(expected.length);
    }, TIMEOUT);
  }

  describe('poisoned messages', () => {
    it('of usage-events are quarantined with their reason, are counted, and block no others', async () => {
      const tenantId = newId('ten');
      const good: UsageEvent[] = [];
      const make = () => (good.push(usageEvent(tenantId)), good.at(-1)!);
      const sample = usageEvent(tenantId);
      const dead = unreadable(sample);
      const rejected: [string, Buffer, string][] = [
        ['missing field', json(envelope({ ...sample, id: undefined })), 'id: not a request id'],
        ['wrong type', json(envelope({ ...sample, promptTokens: '100' })), 'promptTokens: not a token count'],
        ['negative', json(envelope({ ...sample, completionTokens: -1 })), 'completionTokens: not a token count'],
        ['negative money', json(envelope({ ...sample, costNanos: '-5' })), 'costNanos: not an amount'],
        ['huge amount', json(envelope({ ...sample, costNanos: '9223372036854775808' })), 'costNanos: not an amount'],
        ['over-long string', json(envelope({ ...sample, model: 'm'.repeat(100_000) })), 'model: not a name'],
        ['control characters', json(envelope({ ...sample, model: 'a\0b' })), 'model: not a name'],
        ['no time', json(envelope({ ...sample, endedAt: '2026-02-30T00:00:00.000Z' })), 'endedAt: not a time'],
        ['the future', json(envelope({ ...sample, endedAt: '2999-01-01T00:00:00.000Z' })), 'endedAt: in the future'],
        ['nested too deep', nested({ ...sample, kind: 'DEEP' }), 'kind: unknown'],
      ];
      await sender!.poison(
        'usage-events',
        tenantId,
        [...dead, ...rejected].map(([, value]) => value),
        make,
      );
      // A message with the key of another tenant is valid. Only its order differs.
      const strayed = make();
      await sender!.send('usage-events', [{ key: newId('ten'), value: json(envelope(strayed)) }]);
      const charges = () =>
        deployed.query<{ id: string }>('SELECT id FROM billing.charge WHERE tenant_id = $1', [tenantId]);
      await eventually(
        async () => expect((await charges()).map(({ id }) => id).sort()).toEqual(good.map(({ id }) => id).sort()),
        TIMEOUT,
      );
      await expectDead('usage-events', tenantId, dead, services.metering);
      const rows = await deployed.query<{ reason: string }>(
        'SELECT reason FROM metering.rejected_event WHERE event LIKE $1',
        [`%${tenantId}%`],
      );
      expect(rows.map(({ reason }) => reason).sort()).toEqual(rejected.map(([, , reason]) => reason).sort());
      expect(await services.metering[0]!.metrics()).toMatch(
        new RegExp(`^tollgate_metering_events_total\\{result="rejected"\\} ${rejected.length}$`, 'm'),
      );
    });

    it('of charges are quarantined with their reason, are counted, and block no others', async () => {
      const tenantId = newId('ten');
      const good: Charge[] = [];
      const make = () => (good.push(charge(tenantId)), good.at(-1)!);
      const sample = charge(tenantId);
      const dead = unreadable(sample);
      const rejected: [string, Buffer, string][] = [
        ['missing field', json(envelope({ ...sample, endedAt: undefined })), 'endedAt is no time'],
        ['wrong type', json(envelope({ ...sample, id: 7 })), 'id is no id'],
        ['negative', json(envelope({ ...sample, costNanos: '-5' })), 'costNanos is no decimal string'],
        ['huge amount', json(envelope({ ...sample, costNanos: '9223372036854775808' })), 'costNanos is out of range'],
        ['over-long string', json(envelope({ ...sample, keyId: 'k'.repeat(100_000) })), 'keyId is no id'],
        ['a NUL', json(envelope({ ...sample, id: 'a\0b' })), 'id is no id'],
        ['nested too deep', nested({ ...sample, costNanos: 'DEEP' }), 'costNanos is no decimal string'],
      ];
      await sender!.poison(
        'charges',
        tenantId,
        [...dead, ...rejected].map(([, value]) => value),
        make,
      );
      const charges = () =>
        deployed.query<{ id: string }>('SELECT id FROM billing.charge WHERE tenant_id = $1', [tenantId]);
      await eventually(
        async () => expect((await charges()).map(({ id }) => id).sort()).toEqual(good.map(({ id }) => id).sort()),
        TIMEOUT,
      );
      await expectDead('charges', tenantId, dead, services.billing);
      const rows = await deployed.query<{ reason: string }>(
        'SELECT reason FROM billing.rejected_charge WHERE data LIKE $1',
        [`%${tenantId}%`],
      );
      expect(rows.map(({ reason }) => reason).sort()).toEqual(rejected.map(([, , reason]) => reason).sort());
    });

    it('of credit-news are quarantined with their reason, are counted, and block no others', async () => {
      const { id: tenantId, key } = await deployed.newTenant();
      await eventually(async () => expect((await deployed.chat(key)).status).toBe(200));
      let version = 100;
      const make = (): BalanceUpdate => balanceUpdate(tenantId, ++version, 10_000_000_000n);
      const sample = make();
      const dead: [string, Buffer | null, RegExp][] = [
        ...unreadable(sample),
        ['missing field', json(envelope({ ...sample, releases: undefined })), /releases/],
        ['wrong type', json(envelope({ ...sample, suspended: 'yes' })), /suspended/],
        ['no number', json(envelope({ ...sample, version: 'x' })), /version/],
        ['negative version', json(envelope({ ...sample, version: '-3' })), /version/],
        ['huge amount', json(envelope({ ...sample, balanceNanos: '9'.repeat(40) })), /balanceNanos/],
        ['over-long string', json(envelope({ ...sample, releases: ['r'.repeat(100_000)] })), /releases/],
        ['an invalid tenant id', json(envelope({ ...sample, tenantId: 'acme' })), /tenantId/],
        ['nested too deep', nested({ ...sample, version: 'DEEP' }), /version/],
      ];
      await sender!.poison(
        'credit-news',
        tenantId,
        dead.map(([, value]) => value),
        make,
      );
      const applied = () => deployed.redisCli('HGET', `tga:{${tenantId}}:credit`, 'version');
      // Billing never made these versions, so its watch may have repaired them by then.
      const repaired = /^tollgate_billing_poisoned_tenants_total\{found="version"\} [1-9]/m;
      await eventually(async () => {
        if ((await applied()).trim().endsWith(String(version))) return;
        expect(await services.billing[0]!.metrics()).toMatch(repaired);
      }, TIMEOUT);
      await expectDead('credit-news', tenantId, dead, services.gateway);
      expect((await onceServed(() => deployed.chat(key))).status).toBe(200);
    });

    it('of tenant-news are quarantined with their reason, are counted, and block no others', async () => {
      const { id: tenantId } = await deployed.newTenant();
      const of = (version: number): TenantUpdate => ({
        tenantId,
        version,
        status: version % 2 ? 'suspended' : 'active',
      });
      // Newer than any version of auth.
      let version = 1_000;
      const sample = of(version);
      const dead: [string, Buffer | null, RegExp][] = [
        ...unreadable(sample),
        ['missing field', json(envelope({ ...sample, status: undefined })), /status/],
        ['wrong type', json(envelope({ ...sample, version: '7' })), /version/],
        ['negative', json(envelope({ ...sample, version: -1 })), /version/],
        ['huge number', json(envelope({ ...sample, version: 1e300 })), /version/],
        ['over-long string', json(envelope({ ...sample, tenantId: `ten_${'t'.repeat(100_000)}` })), /tenantId/],
        ['a NUL', json(envelope({ ...sample, tenantId: `${tenantId}\0` })), /tenantId/],
        ['nested too deep', nested({ ...sample, status: 'DEEP' }), /status/],
      ];
      await sender!.poison(
        'tenant-news',
        tenantId,
        dead.map(([, value]) => value),
        () => of(++version),
      );
      await eventually(async () => {
        const [books] = await deployed.query<{ version: string; suspended: boolean }>(
          'SELECT status_version::text AS version, suspended FROM billing.tenant_books WHERE tenant_id = $1',
          [tenantId],
        );
        expect(books).toEqual({ version: String(version), suspended: of(version).status === 'suspended' });
      }, TIMEOUT);
      await expectDead('tenant-news', tenantId, dead, services.billing);
    });

    it('of every topic that has a consumer are tested', () => {
      const consumed = Object.entries(TOPICS).filter(([, { groups }]) => Object.keys(groups).length > 0);
      expect(consumed.map(([topic]) => topic).sort()).toEqual([...POISONED].sort());
    });
  });
}
