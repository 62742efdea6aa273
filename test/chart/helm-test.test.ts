import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { ROOT } from './manifests';

const SCRIPT = join(ROOT, 'deploy/chart/files/test.mjs');
const TIMEOUT_MS = 90_000;
/** In the place of the `tollgate` command: it notes the secret, and answers as the command does. */
const COMMAND = `
const { appendFileSync } = require('node:fs');
const [noun, verb] = process.argv.slice(2);
appendFileSync('commands', JSON.stringify([process.env.TOLLGATE_OPERATOR_SECRET, noun, verb]) + '\\n');
const answers = { tenant: { id: 'ten_1' }, credit: {}, key: { key: 'tg_key' }, usage: { totals: { requests: 2 } } };
console.log(JSON.stringify(answers[noun] ?? {}));
`;

describe('the test of the chart', () => {
  let directory: string;
  let server: Server;
  const asked: { authorization: string | undefined; stream: boolean }[] = [];

  beforeEach(async () => {
    directory = mkdtempSync(join(tmpdir(), 'tollgate-helm-test-'));
    mkdirSync(join(directory, 'apps/cli/dist'), { recursive: true });
    writeFileSync(join(directory, 'apps/cli/dist/main.js'), COMMAND);
    asked.length = 0;
    server = createServer((request, response) => {
      let body = '';
      request.on('data', (chunk: Buffer) => (body += chunk.toString()));
      request.on('end', () => {
        const { stream } = JSON.parse(body) as { stream: boolean };
        asked.push({ authorization: request.headers.authorization, stream });
        response.end(stream ? 'data: {}\n\ndata: [DONE]\n\n' : '{}');
      });
    });
    await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  });
  afterEach(async () => {
    await new Promise((closed) => server.close(closed));
    rmSync(directory, { recursive: true });
  });

  it('signs in with the secret of the gateways, buys credit, and asks for a plain and a streamed chat', async () => {
    const secretFile = join(directory, 'operator-secret');
    // Any printable characters are a secret, a comma as well.
    writeFileSync(secretFile, 'one,secret\n');
    await promisify(execFile)(process.execPath, [SCRIPT], {
      cwd: directory,
      timeout: TIMEOUT_MS,
      env: {
        PATH: process.env['PATH'],
        TOLLGATE_PUBLIC_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
        TOLLGATE_TEST_MODEL: 'sim-large',
        TOLLGATE_TEST_SECRET: secretFile,
      },
    });
    const commands = readFileSync(join(directory, 'commands'), 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as (string | undefined)[]);
    expect(commands.map(([, noun]) => noun)).toEqual(['tenant', 'credit', 'key', 'usage', 'reconcile']);
    expect([...new Set(commands.map(([used]) => used))]).toEqual(['one,secret']);
    expect(asked).toEqual([
      { authorization: 'Bearer tg_key', stream: false },
      { authorization: 'Bearer tg_key', stream: true },
    ]);
  });
});
