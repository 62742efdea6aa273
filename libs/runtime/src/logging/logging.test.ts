import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

const SECRETS = [`sk-svc-${'aB3'.repeat(16)}x`, `fma_${'aB3'.repeat(16)}x`, `tgo_${'aB3'.repeat(16)}x`];
const BUILT = join(__dirname, '../../dist/index.js');

/** The stderr of a separate process: a process has only one logger. */
function logged(code: string): string[] {
  const begin =
    `const { configureLogging, logger } = require(${JSON.stringify(BUILT)}); ` +
    "configureLogging({ level: 'trace', pretty: false });";
  const { stderr } = spawnSync(process.execPath, ['-e', `${begin} const log = logger('test'); ${code}`], {
    encoding: 'utf8',
  });
  return stderr.trim().split('\n');
}

it('the log hides keys and tokens wherever they occur in a line, which remains valid JSON', () => {
  for (const secret of SECRETS) {
    const lines = logged(`
      const secret = ${JSON.stringify(secret)};
      log.debug({ path: '/v1/models/' + secret, url: 'http://h/v1?key=' + secret + '&x=1' }, 'asked for ' + secret);
      const url = '/keys/' + secret;
      const error = Object.assign(new Error('no route for ' + secret), { url, cause: new Error(secret) });
      log.error({ err: error }, 'failed');
      log.child({ of: secret }).info('%s', secret);
    `);
    expect(lines).toHaveLength(3);
    for (const line of lines) {
      expect(line).not.toContain(secret.slice(8));
      expect(line).toContain('[hidden]');
      expect(JSON.parse(line)).toMatchObject({ component: 'test' });
    }
  }
});

it('the log hides the values of a statement that failed, and keeps the statement and the constraint', () => {
  const lines = logged(`
    const detail = 'Key (email)=(anna@example.com) already exists.';
    const driver = Object.assign(new Error('duplicate key'), { code: '23505', constraint: 'user_email_key', detail });
    const query = 'INSERT INTO "user" (email) VALUES ($1)';
    const fields = { query, parameters: ['anna@example.com'], driverError: driver };
    const failed = Object.assign(new Error('duplicate key', { cause: driver }), driver, fields);
    log.error({ err: failed }, 'failed');
    log.warn({ err: new AggregateError([failed, driver], 'both') }, 'failed');
    log.error({ err: new Error('outer', { cause: failed }) }, 'failed');
  `);
  expect(lines).toHaveLength(3);
  for (const line of lines) expect(line).not.toContain('anna@');
  const { err } = JSON.parse(lines[0]!);
  expect(err).toMatchObject({ code: '23505', constraint: 'user_email_key', stack: expect.any(String) });
  expect(err.query).toMatch(/^INSERT INTO/);
  expect([err.parameters, err.detail, err.driverError]).toEqual(Array(3).fill('[hidden]'));
});
