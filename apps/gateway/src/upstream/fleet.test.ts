import { backendAt, modelWith } from './exchange.fixture';
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
