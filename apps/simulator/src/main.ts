import { run } from './run';

// Registered before anything that takes time: process 1 of a container has no default signal handling.
const signals: (() => void)[] = [];
const [stopWanted, cutWanted] = [0, 1].map(() => new Promise<void>((resolve) => signals.push(resolve)));
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => signals.shift()?.());

run(process.argv.slice(2)).then(
  async (simulator) => {
    process.stdout.write(`${JSON.stringify({ url: simulator.url })}\n`);
    await stopWanted;
    // Open streams end within the grace time of whoever sent the signal. A second signal cuts them.
    void cutWanted!.then(() => simulator.close());
    await simulator.end();
  },
  (error: unknown) => {
    process.stderr.write(`simulator: ${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = 1;
  },
);
