import { spawnSync } from 'node:child_process';
import { setTimeout } from 'node:timers/promises';
import { inForceAfterMs } from './eventually';
import { elapsedMs } from './standstill';

const HELD_MS = 400;
const WORKED_MS = 300;

describe('the time of a test', () => {
  /** Waits for another process in a system call, without using the processor: for this process, a standstill. */
  const standStill = () => void spawnSync('sleep', [String(HELD_MS / 1_000)]);

  it('excludes a standstill of the process', async () => {
    const fromMs = performance.now();
    const counted = await elapsedMs(async () => {
      await setTimeout(1);
      standStill();
      await setTimeout(1);
    });
    expect(performance.now() - fromMs - counted).toBeGreaterThan(HELD_MS / 2);
  });

  it('includes the work of the process', async () => {
    const before = process.cpuUsage();
    let workedMs = 0;
    const counted = await elapsedMs(async () => {
      while (workedMs < WORKED_MS) {
        const { user, system } = process.cpuUsage(before);
        workedMs = (user + system) / 1_000;
      }
      return Promise.resolve();
    });
    expect(counted).toBeGreaterThan(workedMs / 2);
  });

  it('until something is in force excludes a standstill of the process', async () => {
    let checks = 0;
    const fromMs = performance.now();
    const counted = await inForceAfterMs(async () => {
      checks += 1;
      if (checks === 2) standStill();
      if (checks < 4) throw new Error('not yet');
    });
    expect(performance.now() - fromMs - counted).toBeGreaterThan(HELD_MS / 2);
  });
});
