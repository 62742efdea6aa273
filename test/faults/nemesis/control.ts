import { spawn, type ChildProcess } from 'node:child_process';
import type { ComposedDeployment } from '../../e2e/composed';

const EVERY_MS = 100;
/** How long samples are kept, which is longer than any round. */
const MEMORY_MS = 15 * 60_000;
/** The processor time of one piece of work. */
export const WORK_MS = 5;
/** Does one piece of work for each byte of stdin, then writes a dot. */
const WORKER = `process.stdin.on('data', () => {
  const before = process.cpuUsage();
  for (let spent; !spent || spent.user + spent.system < ${WORK_MS * 1_000}; ) spent = process.cpuUsage(before);
  process.stdout.write('.');
})`;

interface Sample {
  fromMs: number;
  untilMs: number;
}

/**
 * Measures how busy the machine is, by small pieces of work that wait for nothing but the processor. They run in a
 * container that no fault touches, because containers together may get less of the machine than other processes. If a
 * piece takes a second instead of 5 ms, the work of a request takes two hundred times as long as well.
 */
export class Control {
  private samples: Sample[] = [];
  /** The requested piece of work that is not done yet. */
  private open: Sample | undefined;
  private readonly timer: NodeJS.Timeout;
  private dueMs = Date.now();

  private constructor(private readonly child: ChildProcess) {
    child.stdout!.on('data', () => this.hear());
    // The container is being removed.
    child.stdin!.on('error', () => this.stop());
    this.timer = setInterval(() => this.ask(), EVERY_MS);
  }

  static async start(tollgate: ComposedDeployment): Promise<Control> {
    const [container] = await tollgate.containers('simulator');
    const stdio = ['pipe', 'pipe', 'inherit'] as const;
    const child = spawn('docker', ['exec', '--interactive', container!, 'node', '-e', WORKER], { stdio: [...stdio] });
    const answered = new Promise<void>((resolve, reject) => {
      child.stdout.once('data', () => resolve());
      child.once('exit', () => reject(new Error('the control process ended')));
    });
    child.stdin.write('.');
    await answered;
    return new Control(child);
  }

  /** The longest time of the pieces that were running between the two times. */
  longestMs(fromMs: number, untilMs: number): number {
    return Math.max(0, ...this.within(fromMs, untilMs));
  }

  meanMs(fromMs: number, untilMs: number): number {
    const took = this.within(fromMs, untilMs);
    return took.reduce((sum, ms) => sum + ms, 0) / Math.max(1, took.length);
  }

  stop(): void {
    clearInterval(this.timer);
    this.child.kill();
  }

  private within(fromMs: number, untilMs: number): number[] {
    return [...this.samples, ...(this.open ? [{ ...this.open, untilMs: Date.now() }] : [])]
      .filter((one) => one.fromMs <= untilMs && one.untilMs >= fromMs)
      .map((one) => one.untilMs - one.fromMs);
  }

  private ask(): void {
    if (this.open) return;
    const nowMs = Date.now();
    // Counts from the scheduled time, because this process may stand still as well.
    this.open = { fromMs: Math.min(nowMs, this.dueMs), untilMs: Infinity };
    this.child.stdin!.write('.');
  }

  private hear(): void {
    const untilMs = Date.now();
    if (this.open) this.samples.push({ ...this.open, untilMs });
    this.open = undefined;
    this.dueMs = untilMs + EVERY_MS;
    if ((this.samples[0]?.untilMs ?? untilMs) < untilMs - MEMORY_MS)
      this.samples = this.samples.slice(this.samples.length >> 1);
  }
}
