import { eventually } from '@tollgate/testing';
import type { ComposedDeployment, Server, Service } from '../e2e/composed';
import { createTenant, withSecondKey, type TestTenant } from '../e2e/fixtures';
import type { Outcome } from './client-request';
import { chargedTokens } from './ledger-check';
import { Load, TOKENS_PER_SECOND } from './load';
import { DUST_LIMIT_MS, failureKinds, Trials, type Trial } from './trial';
import type { Control } from './nemesis/control';
import { cutOff } from './nemesis/inflict';
import { isByStandstill, isUnavailable, noticedMs, waitMs } from './nemesis/verdict';

const SEED = Number(process.env['TOLLGATE_TEST_SEED'] ?? Date.now() % 1_000_000);
const TENANTS = 3;
const CREDIT_CENTS = 1_000_000;
/** The credit of one more tenant, which gets a little at each fault and spends it. */
const SCARCE_BEGIN_CENTS = 1;
const KAFKA_PAUSE_MS = 20_000;
const PAUSE_TIMEOUT_MS = 10_000;
/**
 * A request to join a group that its consumer gave up during the pause makes a member that nobody is. The group waits
 * for it, rarely: for a rebalance (30 s) and a session (6 s), at most.
 */
const REJOIN_MS = 36_000;
/** On an idle machine, the longest wait for the 502 of a frozen gateway, and for the end of its stream. */
const DEAD_GATEWAY_MS = 3_000;
const BROKEN_STREAM_MS = 2_000;
/** A stream records its progress once a second. The record may take this long to arrive. */
const PROGRESS_SLACK_MS = 500;
/** Time for all services, one after the other. */
const IN_TURN_TIMEOUT_MS = 420_000;
/** Answers that arrive while a part is unavailable, about two seconds of the load. */
const ANSWERS_AWAY = 80;
/** Takes longer than the lease of a hold. */
const ANSWERS_FROZEN = 6 * ANSWERS_AWAY;

/**
 * Every fault under a steady load on the composed services. After each, every answer that a client saw complete is in
 * the ledger exactly once, and no hold is left.
 */
export function faultTests(tollgate: ComposedDeployment, control: () => Control): void {
  let load: Load;
  let trials: Trials;

  beforeAll(async () => {
    const callers: TestTenant[] = [];
    const scarce = await createTenant(tollgate.ready, SCARCE_BEGIN_CENTS);
    for (let index = 0; index < TENANTS; index++) {
      const tenant = await createTenant(tollgate.ready, CREDIT_CENTS);
      callers.push(tenant, await withSecondKey(tollgate.ready, tenant));
    }
    const tenants = [...new Set(callers.map(({ id }) => id))].map((id) => ({ id, creditCents: CREDIT_CENTS }));
    load = new Load(() => tollgate.ready.inferenceUrl, [...callers, scarce], SEED);
    const given = [...tenants, { id: scarce.id, creditCents: SCARCE_BEGIN_CENTS }];
    trials = new Trials(tollgate, load, given, scarce, control);
  });

  afterAll(async () => {
    await load.pause();
    process.stderr.write(`\nFaults under load (TOLLGATE_TEST_SEED=${SEED}):\n${trials.report()}\n\n`);
  });

  const first = async (service: Service | Server) => (await tollgate.containers(service))[0]!;

  const isByFault = (outcome: Outcome) => !isByStandstill(outcome, control());
  function expectNoFailure({ failed }: Trial): void {
    expect(failureKinds(failed.filter(isByFault))).toBe('');
  }

  it('a killed gateway breaks only its requests, and broken streams are charged up to the last second', async () => {
    let [killedMs, goneMs] = [0, 0];
    const { failed } = await trials.run('gateway killed', async () => {
      const gateway = await first('gateway');
      killedMs = Date.now();
      await tollgate.docker('kill', gateway);
      goneMs = Date.now();
      await tollgate.docker('start', gateway);
    });
    expect(failed.filter(({ startedMs }) => startedMs > noticedMs(control(), goneMs)).filter(isByFault)).toEqual([]);
    expect(
      failed.filter(({ failure }) => !/^(broken|502 upstream_error|503 overloaded_error)$/.test(failure!)),
    ).toEqual([]);
    const streams = failed.filter(({ requestId, failure }) => requestId !== null && failure === 'broken');
    expect(streams.length).toBeGreaterThan(0);
    const charged = await chargedTokens(
      tollgate.database,
      streams.map(({ requestId }) => requestId!),
    );
    for (const { requestId, arrivalsMs } of streams) {
      const surely = arrivalsMs.filter((ms) => ms < killedMs - 1_000 - PROGRESS_SLACK_MS).length;
      const tokens = charged.get(requestId!) ?? 0;
      const isRight = tokens >= surely && tokens <= arrivalsMs.length + TOKENS_PER_SECOND * (PROGRESS_SLACK_MS / 1_000);
      expect({ requestId, tokens, surely, arrived: arrivalsMs.length, isRight }).toMatchObject({ isRight: true });
    }
  });

  it.each([
    {
      name: 'frozen for longer than a lease',
      answers: ANSWERS_FROZEN,
      // On a busy machine the engine may not freeze all processes at once, as for Kafka.
      begin: (gateway: string): Promise<string> =>
        eventually(() => tollgate.docker('pause', gateway), { timeoutMs: PAUSE_TIMEOUT_MS }),
      end: (gateway: string): Promise<string> => tollgate.docker('unpause', gateway),
    },
    {
      name: 'cut off from its load balancer',
      answers: 2 * ANSWERS_AWAY,
      begin: (gateway: string): Promise<string> =>
        tollgate.docker('network', 'disconnect', tollgate.network('gateways'), gateway),
      end: (gateway: string): Promise<string> =>
        tollgate.docker('network', 'connect', '--alias', 'gateway', tollgate.network('gateways'), gateway),
    },
  ])(
    'clients of a gateway that is $name get 502 or a broken stream within seconds, and nothing is sent twice',
    async ({ name, begin, answers, end }) => {
      let begunMs = 0;
      const { outcomes, failed } = await trials.run(`a gateway ${name}`, async () => {
        const gateway = await first('gateway');
        await begin(gateway);
        begunMs = Date.now();
        await load.answers(answers);
        await end(gateway);
        await tollgate.isReady(gateway);
      });
      const others = failed.filter(({ failure }) => !/^(broken|502 upstream_error)$/.test(failure!));
      expect(failureKinds(others.filter(isByFault))).toBe('');
      expect(failed.length).toBeGreaterThan(0);
      // The engine takes some time for the fault. No request may fail that begins after it was noticed.
      const late = failed.filter(({ startedMs }) => startedMs > noticedMs(control(), begunMs));
      expect(failureKinds(late.filter(isByFault))).toBe('');
      for (const outcome of outcomes) {
        const { kind, failure, requestId } = outcome;
        const limitMs = kind === 'stream' && failure === 'broken' ? BROKEN_STREAM_MS : DEAD_GATEWAY_MS;
        const waitedMs = waitMs(outcome, { control: control() });
        expect({ requestId, kind, failure, waitedMs, inTime: waitedMs < limitMs }).toMatchObject({ inTime: true });
      }
    },
  );

  it('gateways that return with other addresses use none of their old connections', async () => {
    const gateways = await tollgate.containers('gateway');
    const addresses = () =>
      tollgate.docker('inspect', '--format', '{{range .NetworkSettings.Networks}}{{.IPAddress}} {{end}}', ...gateways);
    const before = await addresses();
    let backMs = 0;
    const { failed } = await trials.run('all gateways cut off', async () => {
      const cuts = await Promise.all(gateways.map((gateway) => cutOff(tollgate, gateway, 'all')));
      // The first to return gets the first free address. So in one of the two orders they swap addresses.
      for (const order of [cuts, cuts.toReversed()]) {
        for (const cut of order) await cut.begin();
        for (const cut of order) await cut.end();
        if ((await addresses()) !== before) break;
      }
      for (const gateway of gateways) await tollgate.isReady(gateway);
      backMs = Date.now();
      while (Date.now() < noticedMs(control(), backMs)) await load.answers(ANSWERS_AWAY / 4);
      await load.answers(ANSWERS_AWAY / 4);
    });
    expect(await addresses()).not.toBe(before);
    // Until the load balancer has found them again, it may say that none is there.
    const wrong = (outcome: Outcome) =>
      outcome.startedMs > (isUnavailable(outcome.failure) ? noticedMs(control(), backMs) : backMs) &&
      isByFault(outcome);
    const late = failed.filter(wrong).map(({ failure, requestId, startedMs }) => {
      // A request id with a UUID is from the load balancer.
      return `${failure} of ${requestId}, ${startedMs - backMs} ms after the gateways were ready`;
    });
    expect(late).toEqual([]);
  });

  it('SIGKILL of metering and billing during their work breaks no request', async () => {
    expectNoFailure(
      await trials.run('metering and billing killed', async () => {
        const killed = [await first('metering'), await first('billing')];
        await tollgate.docker('kill', ...killed);
        await tollgate.docker('start', ...killed);
      }),
    );
  });

  it('a pause of Kafka for 20 s breaks no request', async () => {
    expectNoFailure(
      await trials.run(
        'Kafka paused for 20 s',
        async () => {
          // On a busy machine the engine may not freeze all processes at once. Then none is frozen.
          await eventually(() => tollgate.compose('pause', 'kafka'), { timeoutMs: PAUSE_TIMEOUT_MS });
          await new Promise((resolve) => setTimeout(resolve, KAFKA_PAUSE_MS));
          await tollgate.compose('unpause', 'kafka');
        },
        { dustLimitMs: DUST_LIMIT_MS + REJOIN_MS },
      ),
    );
  });

  it.each(['kafka', 'postgres'] as const)('a restart of %s breaks no request', async (server) => {
    expectNoFailure(
      await trials.run(`${server} restarted`, async () => {
        await tollgate.compose('restart', server);
        await tollgate.listens(server);
      }),
    );
  });

  it('a restart of Redis with its data causes no failure but 503', async () => {
    const { failed } = await trials.run(
      'redis restarted',
      async () => void (await tollgate.compose('restart', 'redis')),
    );
    expect(failed.filter(({ failure }) => !isUnavailable(failure))).toEqual([]);
  });

  it('an emptied Redis causes no failure but 503, and never a refusal for the credit or the key', async () => {
    const empty = async () => void (await tollgate.redis('FLUSHALL'));
    const { failed } = await trials.run('redis emptied', empty, { empties: true });
    expect(failed.filter(({ failure }) => !isUnavailable(failure))).toEqual([]);
  });

  it('the load balancer stops using a gateway that is cut off from Redis', async () => {
    let cutMs = 0;
    const { failed } = await trials.run('a gateway cut off from redis', async () => {
      const [network, gateway] = [tollgate.network('redis'), await first('gateway')];
      await tollgate.docker('network', 'disconnect', network, gateway);
      cutMs = Date.now();
      await load.answers(2 * ANSWERS_AWAY);
      await tollgate.docker('network', 'connect', network, gateway);
      await tollgate.isReady(gateway);
    });
    expect(failed.filter(({ startedMs }) => startedMs > noticedMs(control(), cutMs)).filter(isByFault)).toEqual([]);
    expect(failed.filter(({ failure }) => !isUnavailable(failure))).toEqual([]);
  });

  it('a gateway that is cut off from Kafka breaks no request', async () => {
    expectNoFailure(
      await trials.run('a gateway cut off from kafka', async () => {
        const [network, gateway] = [tollgate.network('kafka'), await first('gateway')];
        await tollgate.docker('network', 'disconnect', network, gateway);
        await load.answers(2 * ANSWERS_AWAY);
        await tollgate.docker('network', 'connect', network, gateway);
      }),
    );
  });

  it('adding and removing consumers breaks no request', async () => {
    expectNoFailure(
      await trials.run('consumers added and removed', async () => {
        await tollgate.scale({ metering: 3, billing: 3 });
        await load.answers(ANSWERS_AWAY);
        await tollgate.scale({ metering: 1, billing: 1 });
        await load.answers(ANSWERS_AWAY);
        await tollgate.scale({ metering: 2, billing: 2 });
      }),
    );
  });

  it('known keys are served while everything but Redis is down', async () => {
    expectNoFailure(
      await trials.run('all but redis down', async () => {
        const containersOf = async (parts: readonly (Service | Server)[]) =>
          (await Promise.all(parts.map((part) => tollgate.containers(part)))).flat();
        const servers = await containersOf(['postgres', 'kafka']);
        const services = await containersOf(['auth', 'metering', 'billing']);
        await tollgate.docker('kill', ...servers, ...services);
        await load.answers(ANSWERS_AWAY);
        await tollgate.docker('start', ...servers, ...services);
        for (const service of services) await tollgate.isReady(service);
      }),
    );
  });

  it(
    'a rollout by SIGTERM of every service, one replica at a time, breaks no request',
    async () => {
      expectNoFailure(
        await trials.run('rollout by SIGTERM', async () => {
          const services = ['auth', 'metering', 'billing', 'gateway'] as const;
          const replicas = await Promise.all(services.map((service) => tollgate.containers(service)));
          for (let index = 0; replicas.some((names) => index < names.length); index++) {
            await Promise.all(replicas.flatMap((names) => names.slice(index, index + 1)).map(rollOut));
          }
        }),
      );
    },
    IN_TURN_TIMEOUT_MS,
  );

  async function rollOut(container: string): Promise<void> {
    await tollgate.docker('stop', '--time', '45', container);
    expect([container, await tollgate.exitCode(container)]).toEqual([container, 0]);
    await tollgate.docker('start', container);
    await tollgate.isReady(container);
  }

  it('a tenant with little credit was served until its credit was used up, during every fault', () => {
    const { scarce } = trials;
    const own = load.outcomes.filter(({ tenantId }) => tenantId === scarce.id);
    expect(own.filter(({ failure }) => failure === null).length).toBeGreaterThan(trials.done.length);
    expect(own.filter((outcome) => trials.isSpent(outcome)).length).toBeGreaterThan(trials.done.length);
  });
}
