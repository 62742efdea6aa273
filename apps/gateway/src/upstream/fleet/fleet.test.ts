import { metrics } from '@tollgate/runtime';
import { backendAt, closedOrigin, modelWith, upstreamWith } from '../exchange.fixture';
import { Fleet } from './fleet';
import type { Waiting } from './wait-queue';

const QUEUE = { maxRequests: 10, maxWaitMs: 60_000 };

/** A model with one backend, and requests that wait for a place there. */
function waiting(fleet: Fleet, answers: readonly boolean[]) {
  const { queue, backends } = fleet.poolOf(modelWith([backendAt('http://127.0.0.1:1')]));
  const [{ engine }] = backends as [(typeof backends)[0]];
  engine.queues.add(queue);
  const asked: number[] = [];
  const all = answers.map((goes, n): Waiting => {
    const one: Waiting = {
      onPlace: () => {
        asked.push(n);
        if (goes) queue.remove(one);
        return goes;
      },
      onTimeout: () => {},
      hasFailed: false,
    };
    queue.add(one, QUEUE);
    return one;
  });
  return { queue, engine, asked, end: () => all.forEach((one) => queue.remove(one)) };
}

describe('a place that becomes free', () => {
  it('is offered to the next one when the first of the queue does not need it', async () => {
    const fleet = new Fleet();
    const { queue, engine, asked, end } = waiting(fleet, [true, true, false, true]);
    fleet.released(engine);
    await Promise.resolve();
    // The third found no place. It stays the first, and those behind it are not asked.
    expect([asked, queue.length]).toEqual([[0, 1, 2], 2]);
    fleet.recheck();
    expect(asked).toEqual([0, 1, 2, 2]);
    end();
  });

  it('is offered to all queues of the engine, the longest waiting first', async () => {
    const fleet = new Fleet();
    const one = waiting(fleet, [false]);
    const other = waiting(fleet, [true, true]);
    expect(other.engine).toBe(one.engine);
    fleet.released(one.engine);
    await Promise.resolve();
    expect([one.asked, other.asked]).toEqual([[0], [0, 1]]);
    one.end();
  });
});

describe('the open breakers of a backend', () => {
  const at = (url: string, weight = 1, model = 'inner') => ({ ...backendAt(url), weight, model });
  const ONE = 'http://127.0.0.1:1';
  const NAME = `${ONE}/v1`;
  const openOf = (fleet: Fleet) => [...fleet.all].find(({ name }) => name === NAME)?.openBreakers;

  /** A fleet with an open breaker of the first model. */
  function broken(...models: ReturnType<typeof modelWith>[]): Fleet {
    const fleet = new Fleet();
    fleet.follow(models);
    for (const model of models) fleet.poolOf(model);
    fleet.poolOf(models[0]!).backends[0]!.ended('unreachable', false, performance.now());
    return fleet;
  }

  it('are none while the backend is drained, as no call can close them', () => {
    const fleet = broken(modelWith([at(ONE)]));
    expect(openOf(fleet)).toBe(1);
    fleet.drainOnly(new Set([NAME]));
    expect(openOf(fleet)).toBe(0);
    fleet.drainOnly(new Set());
    expect(openOf(fleet)).toBe(1);
  });

  it('are only those of models with a weight there, and are open again with the weight', () => {
    const fleet = broken(modelWith([at(ONE)]), modelWith([at(ONE, 1, 'other')]));
    fleet.follow([modelWith([at(ONE, 0)]), modelWith([at(ONE, 1, 'other')])]);
    expect(openOf(fleet)).toBe(0);
    // Another model calls the same one there.
    fleet.follow([modelWith([at(ONE, 0)]), modelWith([at(ONE)])]);
    expect(openOf(fleet)).toBe(1);
  });

  it('go with a backend that leaves the configuration, and one that comes back begins as a new one', () => {
    const fleet = broken(modelWith([at(ONE)]));
    fleet.follow([modelWith([at('http://127.0.0.1:2')])]);
    expect(openOf(fleet)).toBeUndefined();
    const again = modelWith([at(ONE)]);
    fleet.follow([again]);
    expect(fleet.poolOf(again).backends[0]!.breaker.isOpen).toBe(false);
    expect(openOf(fleet)).toBe(0);
  });

  it('go with a model that leaves the configuration, while its backend has calls in progress for another', () => {
    const fleet = broken(modelWith([at(ONE)]), modelWith([at(ONE, 1, 'other')]));
    const { engine } = fleet.poolOf(modelWith([at(ONE, 1, 'other')])).backends[0]!;
    engine.inFlight = 1;
    fleet.follow([modelWith([at(ONE, 1, 'other')])]);
    expect([openOf(fleet), [...engine.breakers.keys()]]).toEqual([0, [expect.stringContaining('other')]]);
    fleet.follow([]);
    expect(openOf(fleet)).toBe(0);
    engine.inFlight = 0;
    fleet.follow([]);
    expect([...fleet.all]).toEqual([]);
  });
});

it('a backend that left the configuration has no series in the metrics, and nobody connects to it', async () => {
  const upstream = upstreamWith({});
  const gone = backendAt(await closedOrigin());
  const model = modelWith([gone]);
  upstream.fleet.follow([model]);
  const [managed] = upstream.fleet.poolOf(model).backends;
  const shown = async () =>
    (await metrics.getSingleMetricAsString('tollgate_backend_open_breakers')).includes(gone.name);
  expect(await shown()).toBe(true);
  upstream.fleet.follow([]);
  expect(await shown()).toBe(false);
  const timers = jest.spyOn(global, 'setTimeout');
  upstream.lookFor(managed!);
  expect(timers).not.toHaveBeenCalled();
  timers.mockRestore();
  await upstream.close();
});
