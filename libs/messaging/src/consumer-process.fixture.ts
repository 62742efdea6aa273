import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { ConsumerProcess } from './messages-store.fixture';

const CONSUMER_PROCESS = join(__dirname, '../test/consumer-process.mjs');

/** Starts test/consumer-process.mjs. Resolves when it consumes. */
export async function spawnConsumerProcess(argument: object): Promise<ConsumerProcess> {
  const child = spawn(process.execPath, [CONSUMER_PROCESS, JSON.stringify(argument)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = once(child, 'exit');
  const batches: string[][] = [];
  const kill = async () => {
    child.kill('SIGKILL');
    await exited;
  };
  await new Promise<void>((resolve, reject) => {
    void exited.then(([code]) => reject(new Error(`the consumer process ended with ${code}`)));
    createInterface(child.stdout).on('line', (line) => {
      if (line === 'started') resolve();
      else batches.push(JSON.parse(line) as string[]);
    });
  });
  return { batches, kill };
}
