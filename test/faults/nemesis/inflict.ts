import { eventually } from '@tollgate/testing';
import type { ComposedDeployment, Server } from '../../e2e/composed';
import type { Clocks } from './clocks';
import { isService, type Part, type PlannedFault } from './plan';

/** On a busy machine the engine may not freeze all processes of a container at once. Then none is frozen. */
const PAUSE_TIMEOUT_MS = 10_000;
const ANSWER_TIMEOUT_MS = 1_000;
const BACK_TIMEOUT_MS = 120_000;

/** A fault that can be begun and then ended. */
export interface Inflicted {
  planned: PlannedFault;
  begin(): Promise<void>;
  end(): Promise<void>;
}

/** Looks up the containers first, because the engine must not be asked during the fault. */
export async function prepare(tollgate: ComposedDeployment, clocks: Clocks, planned: PlannedFault): Promise<Inflicted> {
  const all = await tollgate.containers(planned.part);
  const containers = planned.replicas.map((index) => all[index]!);
  const each = (work: (container: string) => Promise<unknown>) => async () => {
    await Promise.all(containers.map(work));
  };
  const { kind, part } = planned;
  switch (kind) {
    case 'kill':
      return { planned, begin: each((one) => tollgate.docker('kill', one)), end: each((one) => start(tollgate, one)) };
    case 'restart': {
      let restarting = Promise.resolve();
      const begin = async () => {
        restarting = each((one) => tollgate.docker('restart', one))();
        // A failure is reported at the end.
        restarting.catch(() => {});
      };
      return { planned, begin, end: () => restarting };
    }
    case 'pause':
      return {
        planned,
        begin: each((one) => eventually(() => tollgate.docker('pause', one), { timeoutMs: PAUSE_TIMEOUT_MS })),
        end: each((one) => tollgate.docker('unpause', one)),
      };
    case 'freeze':
      return {
        planned,
        begin: each((one) => signal(tollgate, part, one, 'STOP')),
        end: each((one) => signal(tollgate, part, one, 'CONT')),
      };
    case 'cut': {
      const cuts = await Promise.all(containers.map((one) => cutOff(tollgate, one, planned.cutFrom!)));
      return {
        planned,
        begin: async () => void (await Promise.all(cuts.map((cut) => cut.begin()))),
        end: async () => void (await Promise.all(cuts.map((cut) => cut.end()))),
      };
    }
    case 'empty': {
      const begin = async () => {
        for (const command of ['FUNCTION FLUSH', 'FLUSHALL']) {
          const answer = await tollgate.redis(...command.split(' '));
          if (answer.trim() !== 'OK') throw new Error(`Redis was not emptied: ${answer}`);
        }
      };
      return { planned, begin, end: () => Promise.resolve() };
    }
    case 'clock': {
      const set = (one: string, offsetMs: number) =>
        part === 'redis' ? clocks.setRedis(tollgate, offsetMs) : clocks.setService(tollgate, one, offsetMs);
      return { planned, begin: each((one) => set(one, planned.clockMs!)), end: each((one) => set(one, 0)) };
    }
  }
}

/** Starts a container. Its restart policy may have started it already. */
const start = (tollgate: ComposedDeployment, container: string) => tollgate.docker('start', container);

/**
 * Sends a signal to the main process. In a service, process 1 is Docker's own, so all other processes get the signal
 * from inside. In PostgreSQL, only the process that accepts connections stops, and open connections continue.
 */
async function signal(
  tollgate: ComposedDeployment,
  part: Part,
  container: string,
  name: 'STOP' | 'CONT',
): Promise<void> {
  if (isService(part)) await tollgate.docker('exec', container, 'bash', '-c', `kill -${name} -1`);
  else await tollgate.docker('kill', '--signal', name, container);
}

/** Disconnects a container from one network or from all. It may get other addresses when it is connected again. */
export async function cutOff(
  tollgate: ComposedDeployment,
  container: string,
  from: 'redis' | 'kafka' | 'all',
): Promise<Pick<Inflicted, 'begin' | 'end'>> {
  const text = await tollgate.docker('inspect', '--format', '{{json .NetworkSettings.Networks}}', container);
  // Other containers find it only by its names in the network.
  const networks = Object.entries(JSON.parse(text) as Record<string, { Aliases: string[] | null }>)
    .map(([network, { Aliases }]) => ({ network, aliases: Aliases ?? [] }))
    .filter(({ network }) => from === 'all' || network === tollgate.network(from));
  return {
    begin: async () => {
      for (const { network } of networks) await tollgate.docker('network', 'disconnect', network, container);
    },
    end: async () => {
      for (const { network, aliases } of networks)
        await tollgate.docker(
          'network',
          'connect',
          ...aliases.flatMap((name) => ['--alias', name]),
          network,
          container,
        );
    },
  };
}

/** Waits until the target of the fault is back: a server listens, or a service is ready. */
export async function isBack(tollgate: ComposedDeployment, { part, replicas }: PlannedFault): Promise<void> {
  if (part === 'haproxy') return answers(tollgate);
  if (!isService(part)) return tollgate.listens(part as Server);
  const all = await tollgate.containers(part);
  await Promise.all(replicas.map((index) => tollgate.isReady(all[index]!)));
}

/**
 * Waits until the load balancer answers. A connection does not prove it, because the engine accepts connections to the
 * port as soon as the container has started.
 */
async function answers(tollgate: ComposedDeployment): Promise<void> {
  const ask = () => fetch(`${tollgate.ready.inferenceUrl}/models`, { signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS) });
  await eventually(async () => (await ask()).arrayBuffer(), { timeoutMs: BACK_TIMEOUT_MS, everyMs: 50 });
}
