import { run } from './run';

// Registered before anything that takes time: process 1 of a container has no default signal handling.
const stopWanted = new Promise<void>((resolve) => {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => resolve());
});

run(process.argv.slice(2)).then(
  async (simulator) => {
    process.stdout.write(`${JSON.stringify({ url: simulator.url })}\n`);
    await stopWanted;
    await simulator.close();
  },
  (error: unknown) => {
    process.stderr.write(`simulator: ${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = 1;
  },
);
