import { docker, Stack } from './stack-process';

const LIMIT_MS = 420_000;

// Real: the command and the Docker engine. No container is started.
describe('npm run stack:down', () => {
  const stack = new Stack();
  afterAll(() => stack.remove(), LIMIT_MS);

  it('removes the network of a start with TOLLGATE_TRACES_URL without that setting', async () => {
    const labels = { project: stack.project, network: 'traces' };
    const args = Object.entries(labels).flatMap(([name, value]) => ['--label', `com.docker.compose.${name}=${value}`]);
    await docker('network', 'create', ...args, `${stack.project}_traces`);
    expect(await stack.remains()).toHaveLength(1);
    expect(await stack.down()).toMatchObject({ code: 0 });
    expect(await stack.remains()).toEqual([]);
  });
});
