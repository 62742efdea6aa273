import { SCOPES } from '@tollgate/contracts';
import { eventually } from '@tollgate/testing';
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pythonEnv, schemathesis } from '../../clients/python';
import { send } from '../ask';
import { OPERATOR_SECRET, useServices } from '../services';

const MAX_TIME_MS = 300_000;
const MAX_OUTPUT_BYTES = 32 * 1024 * 1024;
const SHOWN_CHARS = 6_000;
const SEED = process.env['TOLLGATE_TEST_SEED'] ?? '1';

const services = useServices();
let token: string;
let key: string;
let directory: string;

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'tollgate-schemathesis-'));
  const tenant = await services.tenant(SCOPES);
  token = tenant.token;
  const credit = { tenantId: tenant.tenantId, amountCents: 10_000, source: 'manual', ref: 'fuzz' };
  await services.messages.request('billing.credit.add', credit);
  key = (await send(`${services.publicUrl}/_api/v1/keys`, { token, body: { name: 'fuzz' } })).json.data.key;
  await eventually(async () => {
    const body = { model: 'sim-small', messages: [{ role: 'user', content: 'Hello' }], max_tokens: 1 };
    const { status } = await send(`${services.publicUrl}/v1/chat/completions`, { token: key, body });
    expect(status).toBe(200);
  });
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

/**
 * What is not checked here:
 * - `positive_data_acceptance`: valid data can name things that do not exist, such as a profile.
 * - `ignored_auth`: wrong credentials are limited by address, and the tests of credentials try them all.
 */
const EXCLUDED = 'positive_data_acceptance,ignored_auth';

/** Runs schemathesis over a served document. Rejects with its report if a check fails. */
function fuzz(url: string, base: string, credential: string, options: string[]): Promise<string> {
  const args = [
    'run',
    url,
    ...['--url', base, '--header', `Authorization: Bearer ${credential}`, '--seed', SEED, '--no-color'],
    ...['--phases', 'examples,coverage,fuzzing', '--exclude-checks', EXCLUDED, '--continue-on-failure'],
    ...options,
  ];
  return new Promise((resolve, reject) => {
    const limits = { cwd: directory, timeout: MAX_TIME_MS, maxBuffer: MAX_OUTPUT_BYTES };
    execFile(schemathesis, args, { ...limits, env: { ...process.env, ...pythonEnv } }, (error, stdout, stderr) => {
      const failures = stdout.indexOf('= FAILURES =');
      if (error) reject(new Error(stdout.slice(Math.max(0, failures)).slice(0, SHOWN_CHARS) + stderr));
      else resolve(stdout);
    });
  });
}

describe('generated requests, valid and invalid,', () => {
  it.each([
    ['the inference API', '^/v1/', () => key, '20'],
    ['the management API', '^/_api/', () => token, '20'],
  ])(
    'get only documented answers from %s',
    async (_, paths, credential, examples) => {
      const document = `${services.publicUrl}/docs/api/openapi.yaml`;
      const options = ['--include-path-regex', paths, '--max-examples', examples];
      expect(await fuzz(document, services.publicUrl, credential(), options)).toContain('generated, ');
    },
    MAX_TIME_MS,
  );

  it(
    'get only documented answers from the operator API',
    async () => {
      const document = `${services.operatorUrl}/_operator/v1/openapi.yaml`;
      const options = ['--max-examples', '5'];
      expect(await fuzz(document, services.operatorUrl, OPERATOR_SECRET, options)).toContain('generated, ');
    },
    MAX_TIME_MS,
  );
});
