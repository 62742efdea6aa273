import { createServer, type AddressInfo } from 'node:net';
import { Stack } from './stack-process';

// Real: the command and the Docker engine. No container is started.
const LIMIT_MS = 420_000;

describe('npm run stack refuses in one line to start with', () => {
  const stack = new Stack();
  afterAll(() => stack.remove(), LIMIT_MS);

  it.each([
    ['no Docker', { PATH: '/nonexistent' }, /^Docker is not installed: .*npm start/],
    ['no engine', { DOCKER_HOST: 'unix:///nonexistent.sock' }, /^The Docker engine does not answer \(.+\): start it\./],
    ['an invalid port', { TOLLGATE_PORT: '70000' }, /^TOLLGATE_PORT must be a whole number from 0 to 65535$/],
    [
      'a number that the gateway refuses',
      { TOLLGATE_LAME_DUCK_SECONDS: '301' },
      /^TOLLGATE_LAME_DUCK_SECONDS must be a whole number from 0 to 300$/,
    ],
    [
      'another database',
      { DATABASE_URL: 'postgres://x' },
      /^DATABASE_URL is set, but the stack has its own PostgreSQL/,
    ],
    ['another Redis', { REDIS_URL: 'redis://x' }, /^REDIS_URL is set, but the stack has its own Redis/],
    [
      'no tollgate.yaml',
      { TOLLGATE_CONFIG: '/nonexistent.yaml' },
      /^\/nonexistent.yaml: cannot be read \(there is no such file or directory\)/,
    ],
    ['a short secret', { TOLLGATE_OPERATOR_SECRET: 'short' }, /^TOLLGATE_OPERATOR_SECRET must be 16 to 256/],
  ])('%s', async (_name, env, line) => {
    const { code, stdout, stderr } = await stack.up(['--json'], env);
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr.replace(/^tollgate: /, '').trim()).toMatch(line);
    expect(stderr.trim().split('\n')).toHaveLength(1);
  });

  it('a port in use', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await new Promise((done) => server.once('listening', done));
    const { port } = server.address() as AddressInfo;
    const { code, stderr } = await stack.up([], { TOLLGATE_PORT: String(port) });
    await new Promise((done) => server.close(done));
    expect([code, stderr]).toEqual([
      1,
      `tollgate: Port ${port} on 127.0.0.1 is in use: ` +
        'stop what listens there, or set TOLLGATE_PORT (0 = any free port).\n',
    ]);
  });

  it('an image that cannot be pulled', async () => {
    const { code, stderr } = await stack.up([], { TOLLGATE_REDIS_IMAGE: 'registry.invalid/redis:8' });
    expect(code).toBe(1);
    expect(stderr).toMatch(/tollgate: An image cannot be pulled \(.*registry\.invalid.*TOLLGATE_…_IMAGE/);
  });

  it.each(['postgres=2', 'gateway=0', 'gateway', 'haproxy=2', 'billing=17'])('--scale %s', async (scale) => {
    const { code, stderr } = await stack.up(['--scale', scale]);
    expect([code, stderr]).toEqual([
      1,
      `tollgate: --scale ${scale}: it must be gateway, auth, metering, billing or console and a number from 1 to 16, ` +
        'such as --scale gateway=4\n',
    ]);
  });

  it('an unknown option', async () => {
    const { code, stderr } = await stack.up(['--wrong']);
    expect([code, stderr]).toEqual([1, expect.stringMatching(/'--wrong'[^]*Usage: npm run stack/)]);
  });
});
