import { run } from './run';

run(process.argv.slice(2)).then(
  (simulator) => {
    process.stdout.write(`${JSON.stringify({ url: simulator.url })}\n`);
    const stop = (): void => void simulator.close();
    process.once('SIGINT', stop);
    process.once('SIGTERM', stop);
  },
  (error: unknown) => {
    process.stderr.write(`simulator: ${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = 1;
  },
);
