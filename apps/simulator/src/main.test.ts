import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { readEvents } from './use-simulator.fixture';

// The process that the container runs, as it is built.

const MAIN = resolve(__dirname, '../dist/main.js');

async function start() {
  const child = spawn(process.execPath, [MAIN], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  const { url } = JSON.parse(String(line)) as { url: string };
  const stream = (simulator: object) =>
    fetch(`${url}/chat/completions`, {
      method: 'POST',
      body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'hi' }], stream: true, simulator }),
    });
  return { child, stream, exited: once(child, 'exit') };
}

describe('a signal', () => {
  it.each(['SIGTERM', 'SIGINT'] as const)('lets open streams end: %s', async (signal) => {
    const { child, stream, exited } = await start();
    const running = await stream({ answerTokens: 100, tokensPerSecond: 500 });
    child.kill(signal);
    const { events, error } = await readEvents(running);
    expect([error, events.at(-1), await exited]).toEqual([null, '[DONE]', [0, null]]);
  });

  it('cuts them if it is the second one', async () => {
    const { child, stream, exited } = await start();
    const hanging = await stream({ faults: [{ kind: 'hang', afterChunks: 1 }] });
    child.kill('SIGTERM');
    child.kill('SIGINT');
    const { error } = await readEvents(hanging);
    expect([error, await exited]).toEqual([expect.anything(), [0, null]]);
  });
});
