import { PeriodicTask } from './periodic-task';
import { delayUntilAborted } from './timing';

const EVERY_MS = 1_000;
const RETRY_MS = 100;
const FIRST_MS = 300;

beforeEach(() => jest.useFakeTimers());
afterEach(() => jest.useRealTimers());

test('a task runs at once, and again a while after the end of each run', async () => {
  const run = jest.fn(() => Promise.resolve());
  const task = new PeriodicTask({ run, failed: fail, everyMs: EVERY_MS });
  task.start();
  expect(run).toHaveBeenCalledTimes(1);
  await jest.advanceTimersByTimeAsync(2 * EVERY_MS);
  expect(run).toHaveBeenCalledTimes(3);
  await task.stop();
});

test('a task with a first delay does not run before it', async () => {
  const run = jest.fn(() => Promise.resolve());
  const task = new PeriodicTask({ run, failed: fail, everyMs: EVERY_MS, firstMs: FIRST_MS });
  task.start();
  await jest.advanceTimersByTimeAsync(FIRST_MS - 1);
  expect(run).not.toHaveBeenCalled();
  await jest.advanceTimersByTimeAsync(1);
  expect(run).toHaveBeenCalledTimes(1);
  await task.stop();
});

test('a failed run is reported and retried after the delay for retries', async () => {
  const run = jest.fn(() => Promise.resolve()).mockRejectedValueOnce(new Error('away'));
  const failed = jest.fn();
  const task = new PeriodicTask({ run, failed, everyMs: EVERY_MS, retryMs: RETRY_MS });
  task.start();
  await jest.advanceTimersByTimeAsync(RETRY_MS);
  expect(failed.mock.calls).toEqual([[new Error('away')]]);
  expect(run).toHaveBeenCalledTimes(2);
  await jest.advanceTimersByTimeAsync(EVERY_MS - 1);
  expect(run).toHaveBeenCalledTimes(2);
  await task.stop();
});

test('a task ends with the run after which there is no delay', async () => {
  const run = jest.fn(() => Promise.resolve());
  const task = new PeriodicTask({ run, failed: fail, everyMs: () => null });
  task.start();
  await task.current;
  expect(jest.getTimerCount()).toBe(0);
});

test('a run that ends with the reason of the stop has not failed', async () => {
  const failed = jest.fn();
  const run = (ending: AbortSignal) => delayUntilAborted(EVERY_MS, ending).then(() => ending.throwIfAborted());
  for (const reason of [undefined, new Error('the service is stopping')]) {
    const task = new PeriodicTask({ run, failed, everyMs: EVERY_MS });
    task.start();
    await task.stop(reason);
  }
  expect(failed).not.toHaveBeenCalled();
});

test('a run that fails for another reason during the stop is reported', async () => {
  const failed = jest.fn();
  const run = async (ending: AbortSignal) => {
    await delayUntilAborted(EVERY_MS, ending);
    throw new Error('away');
  };
  const task = new PeriodicTask({ run, failed, everyMs: EVERY_MS });
  task.start();
  await task.stop(new Error('the service is stopping'));
  expect(failed.mock.calls).toEqual([[new Error('away')]]);
});

test('stopping waits for the run that is under way, and starts no other', async () => {
  let runs = 0;
  const untilAborted = (ending: AbortSignal) =>
    new Promise<void>((resolve) => {
      runs += 1;
      ending.addEventListener('abort', () => resolve());
    });
  const task = new PeriodicTask({ run: untilAborted, failed: fail, everyMs: EVERY_MS });
  task.start();
  await task.stop();
  await jest.advanceTimersByTimeAsync(10 * EVERY_MS);
  expect(runs).toBe(1);
});

function fail(error: unknown): void {
  throw error;
}
