import { availableParallelism, loadavg } from 'node:os';
import { elapsedMs } from '@tollgate/testing';
import type { App, ServiceProcess } from './service-process';

/** For a process with a core of its own. On a busy machine, in proportion. */
const MAX_START_MS = 10_000;

/** Those that use Redis. The console does not. */
export const ALL: readonly App[] = ['gateway', 'auth', 'metering', 'billing'];
/** The services with a schema. */
export const WITH_DATABASE: readonly App[] = ['auth', 'metering', 'billing'];

export interface Refusal {
  /** The lines of stderr, without the log. */
  lines: string[];
  exitCode: number | null;
  tookMs: number;
}

/** Waits for the end of a service that cannot start. */
export async function refusal(service: ServiceProcess): Promise<Refusal> {
  let exitCode: number | null = null;
  const tookMs = await elapsedMs(async () => (exitCode = await service.exited()));
  const lines = service.stderr.trim().split('\n');
  return { lines: lines.filter((line) => !line.startsWith('{')), exitCode, tookMs };
}

/** Expects that each service reports the error and its remedy in one line, in time. They start together. */
export async function expectRefusals(
  services: readonly ServiceProcess[],
  line: RegExp | ((app: App) => RegExp),
): Promise<void> {
  const howBusy = Math.max(1, loadavg()[0]! / availableParallelism(), services.length / availableParallelism());
  for (const [i, { lines, exitCode, tookMs }] of (await Promise.all(services.map(refusal))).entries()) {
    const { app } = services[i]!;
    expect([app, lines]).toEqual([app, [expect.stringMatching(line instanceof RegExp ? line : line(app))]]);
    expect([app, exitCode]).toEqual([app, 1]);
    expect(tookMs).toBeLessThan(MAX_START_MS * howBusy);
  }
}
