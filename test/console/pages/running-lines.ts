import { execFile } from 'node:child_process';
import { resolve } from 'node:path';
import { promisify } from 'node:util';

/** A program never takes this long, however slow the machine is. */
const ENDS_WITHIN_MS = 60_000;
const ROOT = resolve(__dirname, '../../..');
const run = promisify(execFile);

/** Runs lines of code that a page shows, with the packages of this repository. The answer is what they print. */
export async function printedBy(command: string, ...args: string[]): Promise<string> {
  const env = { PATH: process.env['PATH'], HOME: process.env['HOME'] };
  const { stdout } = await run(command, args, { cwd: ROOT, env, timeout: ENDS_WITHIN_MS });
  return stdout.trim();
}

export const runNode = (code: string) => printedBy(process.execPath, '--input-type=module', '--eval', code);
export const runShell = (line: string) => printedBy('sh', '-c', line);
