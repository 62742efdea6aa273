import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, request as forward, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { OPERATOR_SECRET, type Services } from './services';

const ROOT = resolve(__dirname, '../..');

export interface Ended {
  code: number | null;
  stdout: string;
  stderr: string;
}

/** A data directory like a standalone form's, with the `operator.json` of these services. */
export function useDataDirectory(services: Services): { path: string } {
  const directory = { path: '' };
  beforeAll(() => {
    directory.path = mkdtempSync(join(tmpdir(), 'tollgate-cli-'));
    const operator = { url: services.operatorUrl, secret: OPERATOR_SECRET };
    writeFileSync(join(directory.path, 'operator.json'), JSON.stringify(operator));
  });
  afterAll(() => rmSync(directory.path, { recursive: true }));
  return directory;
}

/** Runs the real process in the folder of its code, with only PATH from this environment. */
export async function runTollgate(args: string[], env: Record<string, string>, root = ROOT): Promise<Ended> {
  const child = spawn(process.execPath, [join(root, 'apps/cli/dist/main.js'), ...args], {
    cwd: root,
    env: { PATH: process.env['PATH'] ?? '', ...env },
  });
  const ended: Ended = { code: null, stdout: '', stderr: '' };
  child.stdout.on('data', (chunk) => (ended.stdout += String(chunk)));
  child.stderr.on('data', (chunk) => (ended.stderr += String(chunk)));
  ended.code = await new Promise((done) => child.once('close', done));
  return ended;
}

/** A server that answers every request with `body` while `use` runs. */
export function withServer<T>(body: string, use: (url: string) => Promise<T>): Promise<T> {
  return withAnswer(200, body, use);
}

/** The same with another status. */
export function withAnswer<T>(status: number, body: string, use: (url: string) => Promise<T>): Promise<T> {
  return whileServing((_request, response) => response.writeHead(status).end(body), use);
}

/** A proxy to the operator API that loses every answer while `use` runs. The requests are executed. */
export function withAnswersLost<T>(services: Services, use: (url: string) => Promise<T>): Promise<T> {
  return whileServing((request, response) => {
    const asked = { method: request.method, path: request.url, headers: request.headers };
    request.pipe(
      forward(services.operatorUrl, asked, (answer) => answer.resume().once('end', () => response.destroy())),
    );
  }, use);
}

async function whileServing<T>(listener: RequestListener, use: (url: string) => Promise<T>): Promise<T> {
  const server = createServer(listener).listen(0, '127.0.0.1');
  await new Promise((done) => server.once('listening', done));
  try {
    return await use(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  } finally {
    await new Promise((done) => server.close(done));
  }
}
