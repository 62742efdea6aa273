import { eventually } from '@tollgate/testing';
import { AssignerProtocol } from 'kafkajs';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { withAdmin } from '../../libs/messaging/src/kafka/admin/apply-topics';
import { Names } from '../../libs/messaging/src/kafka/admin/topic-plan';
import type { Database, Ready } from '../e2e/deployment';
import { connected, createTenant, writeConfig, type Books, type TestTenant } from '../e2e/fixtures';
import { reconciled } from '../e2e/reconcile';
import { booksOf, faultsOf } from '../faults/ledger-check';
import { Load, type Measured } from '../faults/load';
import { isUnavailable } from '../faults/nemesis/verdict';
import { OPERATOR_SECRET, useServers } from '../services/deployment';
import type { ServiceProcess } from '../services/service-process';
import { runTollgate } from '../surfaces/tollgate-process';
import { FormerCode } from './former-code';
import { ORDER } from './order';

type App = (typeof ORDER)[number];
type Processes = Record<App, ServiceProcess>;

const UPGRADE_TIMEOUT_MS = 600_000;
const SHARED_TIMEOUT_MS = 60_000;
const ADMIN_TIMEOUT_MS = 10_000;
/** Enough that each process of a group gets messages of some: the tenant decides on the partition. */
const TENANTS = 24;
const CREDIT_CENTS = 10_000;
const SEED = 1;
/** A request begins at each gateway at this interval. */
const EVERY_MS = 150;
/** Half of the time for which a gateway waits for its store. */
const STOOD_MS = 500;
/** Complete answers of each gateway after each step. */
const ANSWERS = 12;
/** Requests that arrived before the signal are read within this time. */
const LAME_DUCK = { TOLLGATE_LAME_DUCK_SECONDS: '2' };
const names = new Names('');
/** The groups in which both versions of a service consume. */
const GROUPS: Record<App, string[]> = {
  billing: [names.group('charges', 'billing'), names.group('tenant-news', 'billing'), names.handlers('billing')],
  metering: [names.group('usage-events', 'metering'), names.handlers('metering')],
  auth: [names.handlers('auth')],
  gateway: [names.group('credit-news', 'admission')],
};

const env: Record<string, string> = {};
const deployment = useServers(env);
const former = new FormerCode();
const directory = mkdtempSync(join(tmpdir(), 'tollgate-two-versions-'));
const was = {} as Processes;
const now = {} as Processes;
const tenants: TestTenant[] = [];
const loads = new Map<ServiceProcess, Load>();
const exitCodes: (number | null)[] = [];
let books: Map<string, Books>;

const database: Database = (work) => connected({ connectionString: deployment.postgres.url }, work);
const kafkaEnv = () => ({ KAFKA_BROKERS: deployment.env['KAFKA_BROKERS']! });

const readyOf = ({ addresses: { publicUrl, operatorUrl } }: ServiceProcess): Ready => ({
  inferenceUrl: `${publicUrl}/v1`,
  managementUrl: `${publicUrl}/_api/v1`,
  operatorUrl,
  docsUrl: `${publicUrl}/_docs`,
  operatorSecret: OPERATOR_SECRET,
});

/** Runs the `tollgate` command of this version. Returns its output. */
async function tollgate(args: string[], settings: Record<string, string> = {}): Promise<string> {
  const { code, stdout, stderr } = await runTollgate(args, settings);
  if (code !== 0) throw new Error(`tollgate ${args.join(' ')} failed:\n${stderr}`);
  return stdout;
}

/** Creates tenants through this gateway. The load is spread over all tenants. */
async function makeTenants(gateway: ServiceProcess, count: number): Promise<void> {
  const making = Array.from({ length: count }, () => createTenant(readyOf(gateway), CREDIT_CENTS));
  tenants.push(...(await Promise.all(making)));
}

/** Starts a load on this gateway. */
function serve(gateway: ServiceProcess): void {
  const load = new Load(() => readyOf(gateway).inferenceUrl, tenants, SEED + loads.size, EVERY_MS);
  loads.set(gateway, load);
  load.start();
}

const answers = () => Promise.all([...loads.values()].map((load) => load.answers(ANSWERS)));

/** Waits until two processes share the partitions of each of these groups. */
async function shared(groups: string[]): Promise<void> {
  const connection = { brokers: deployment.kafka.brokers, clientId: 'test' };
  await eventually(
    async () => {
      const described = await withAdmin(connection, ADMIN_TIMEOUT_MS, (admin) => admin.describeGroups(groups));
      for (const { groupId, members } of described.groups) {
        const owned = members.map(({ memberAssignment }) => {
          const { assignment = {} } = AssignerProtocol.MemberAssignment.decode(memberAssignment) ?? {};
          return Object.values(assignment).flat();
        });
        expect([groupId, owned.filter((partitions) => partitions.length > 0).length]).toEqual([groupId, 2]);
      }
    },
    { timeoutMs: SHARED_TIMEOUT_MS, everyMs: 500 },
  );
}

async function handled(service: ServiceProcess): Promise<number> {
  const counts = (await service.metrics()).matchAll(/^tollgate_messages_handled_total\{.*\} (\d+)$/gm);
  return [...counts].reduce((sum, [, count]) => sum + Number(count), 0);
}

/** Waits until each process that consumes a topic has handled further messages of the running load. */
async function allHandle(): Promise<void> {
  const consumers = [was, now].flatMap(({ billing, metering, gateway }) => [billing, metering, gateway]);
  const before = await Promise.all(consumers.map(handled));
  await eventually(
    async () => {
      const since = (await Promise.all(consumers.map(handled))).map((count, index) => count - before[index]!);
      expect(since.every((count) => count > 0)).toBe(true);
    },
    { timeoutMs: SHARED_TIMEOUT_MS, everyMs: 200 },
  );
}

/** Installs the former version as its operator did, and starts a load on its gateway. */
async function startFormer(): Promise<void> {
  former.build();
  env['TOLLGATE_CONFIG'] = writeConfig(directory, former.root);
  await former.tollgate(['message-keys', 'create', deployment.keysDirectory]);
  await former.tollgate(['topics', 'apply'], kafkaEnv());
  await deployment.migrate(['auth', 'metering', 'billing'], former);
  const start = async (app: App) => void (was[app] = await deployment.start(app, LAME_DUCK, former));
  await Promise.all((['billing', 'metering', 'auth'] as const).map(start));
  await start('gateway');
  await makeTenants(was.gateway, TENANTS / 2);
  serve(was.gateway);
  await answers();
}

/** Starts this version beside it, service by service, until both versions of all run together. */
async function startBeside(): Promise<void> {
  await tollgate(['message-keys', 'create', deployment.keysDirectory]);
  await tollgate(['topics', 'apply'], kafkaEnv());
  await deployment.migrate();
  await tollgate(['redis', 'load'], { REDIS_URL: deployment.env['REDIS_URL']! });
  await answers();
  for (const app of ORDER) {
    now[app] = await deployment.start(app);
    if (app === 'gateway') serve(now.gateway);
    await shared(GROUPS[app]);
    await answers();
  }
  for (const { gateway } of [was, now]) await makeTenants(gateway, TENANTS / 4);
  await allHandle();
}

/** Ends the processes of the former version one by one. Its gateway gets no further requests, and ends running ones. */
async function endFormer(): Promise<void> {
  for (const app of ORDER) {
    const drained = app === 'gateway' ? loads.get(was.gateway)!.pause() : undefined;
    exitCodes.push(await was[app].end());
    await drained;
    if (drained) loads.delete(was.gateway);
    await answers();
  }
}

describe('an upgrade service by service, in the documented order', () => {
  const all: Load[] = [];
  const outcomes = () => all.flatMap((load) => load.outcomes);
  const complete = () => outcomes().filter(({ failure }) => failure === null);

  beforeAll(async () => {
    await startFormer();
    await startBeside();
    all.push(...loads.values());
    await endFormer();
    await Promise.all([...loads.values()].map((load) => load.pause()));
    await reconciled(readyOf(now.gateway));
    books = await booksOf(
      database,
      tenants.map(({ id }) => id),
    );
  }, UPGRADE_TIMEOUT_MS);
  afterAll(async () => {
    await Promise.all([...loads.values()].map((load) => load.pause()));
    former.remove();
    rmSync(directory, { recursive: true });
  });

  it('serves every request of both gateways while both versions of all services run', () => {
    // A machine that stands still makes a store late.
    const byStandstill = ({ failure, stoodMs }: Measured) => isUnavailable(failure) && stoodMs >= STOOD_MS;
    expect(outcomes().filter((outcome) => outcome.failure !== null && !byStandstill(outcome))).toEqual([]);
    for (const load of all)
      expect(new Set(load.outcomes.map(({ kind }) => kind))).toEqual(new Set(['plain', 'stream', 'embeddings']));
  });

  it('charges every complete answer once at its cost, and nothing else', () => {
    expect(faultsOf(outcomes(), books, () => ({ cents: CREDIT_CENTS, mayOverdrawNanos: 0 }))).toEqual([]);
    const charged = [...books.values()].flatMap(({ charges }) => [...charges.keys()]);
    expect(charged.sort()).toEqual(
      complete()
        .map(({ requestId }) => requestId!)
        .sort(),
    );
  });

  it('records every complete answer once', async () => {
    const { rows } = await database((client) =>
      client.query<{ id: string }>("SELECT id FROM metering.usage_event WHERE outcome = 'complete'"),
    );
    expect(rows.map(({ id }) => id).sort()).toEqual(
      complete()
        .map(({ requestId }) => requestId!)
        .sort(),
    );
  });

  it('quarantines no message', async () => {
    expect(JSON.parse(await tollgate(['dead', 'list', '--json'], kafkaEnv()))).toEqual([]);
  });

  it('ends all processes of the former version without an error', () => {
    expect(exitCodes).toEqual(ORDER.map(() => 0));
  });
});
