import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { run } from './run';

describe('the command line', () => {
  let directory: string;
  const file = async (content: string): Promise<string> => {
    const path = join(directory, 'simulator.yaml');
    await writeFile(path, content);
    return path;
  };
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'tollgate-simulator-'));
  });
  afterAll(() => rm(directory, { recursive: true }));

  it('starts on a free port with the models of a file', async () => {
    const config = await file(
      'strict: true\nmodels:\n  terse: { answerTokens: 3 }\n  broken:\n    faults: [{ kind: status, status: 503 }]\n',
    );
    const simulator = await run(['--port', '0', '--config', config]);
    const ask = (model: string) =>
      fetch(`${simulator.url}/completions`, { method: 'POST', body: JSON.stringify({ model, prompt: 'x' }) });
    expect(await (await ask('terse')).json()).toMatchObject({ usage: { completion_tokens: 3 } });
    expect((await ask('broken')).status).toBe(503);
    expect((await ask('other')).status).toBe(404);
    await simulator.close();
  });

  it('starts with an empty file, and without a file', async () => {
    for (const args of [['--config', await file('# nothing yet\n')], []]) await (await run(args)).close();
  });

  it('refuses to start with a wrong argument or file, and names the error', async () => {
    await expect(run(['--port', '70000'])).rejects.toThrow('--port must be from 0 to 65535');
    await expect(run(['--prot', '1'])).rejects.toThrow("Unknown option '--prot'");
    await expect(run(['--config', join(directory, 'none.yaml')])).rejects.toThrow('no such file');
    await expect(run(['--config', await file('port: 1\n')])).rejects.toThrow('port: is unknown');
    await expect(run(['--config', await file('models: { a: { speed: 3 } }\n')])).rejects.toThrow(
      'models.a.speed: is unknown',
    );
    // The error of the YAML parser shows the place in further lines.
    await expect(run(['--config', await file('models: { a: {\n')])).rejects.toThrow(
      /^\S.*simulator\.yaml: .* at line \d[^\n]*$/,
    );
    const busy = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => busy.once('listening', resolve));
    await expect(run(['--port', String((busy.address() as AddressInfo).port)])).rejects.toThrow('EADDRINUSE');
    await new Promise((resolve) => busy.close(resolve));
  });
});
