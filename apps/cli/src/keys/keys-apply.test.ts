import fs, { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Context } from '../command/context';
import { Failure } from '../command/failure';
import { applyKeys } from './keys-apply';
import { Output } from '../command/output';

const NAMES = ['gpu-01', 'gpu-02', 'gpu-03'];
const secretOf = (name: string) => `sk-svc-of-${name}`;
const LINES = NAMES.map((name) => `key_${name} ${secretOf(name)} ${name}\n`).join('');

let folder: string;
let out: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tollgate-apply-'));
  out = join(folder, 'new-keys.txt');
  writeFileSync(join(folder, 'keys.yaml'), JSON.stringify({ tenant: 'ten_1', keys: NAMES.map((name) => ({ name })) }));
});
afterEach(() => {
  jest.restoreAllMocks();
  rmSync(folder, { recursive: true });
});

/** Applies a file of three new keys. `make` is the server's work. Returns the failure, and all that is printed. */
async function apply(make = () => Promise.resolve()): Promise<{ failure: unknown; stdout: string; stderr: string }> {
  const printed = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const)
    jest.spyOn(process[name], 'write').mockImplementation((...[text]: unknown[]) => {
      printed[name] += String(text);
      return true;
    });
  const post = async (_path: string, { dryRun }: { dryRun: boolean }) => {
    if (!dryRun) await make();
    const created = NAMES.map((name) => ({
      name,
      id: dryRun ? null : `key_${name}`,
      key: dryRun ? null : secretOf(name),
    }));
    return { data: { created, updated: [], revoked: [], unchanged: 0, dryRun, inForce: true } };
  };
  const context = { client: { post }, output: new Output(false) } as unknown as Context;
  const failure: unknown = await applyKeys(context, join(folder, 'keys.yaml'), { yes: true, out }).catch(
    (error: unknown) => error,
  );
  return { failure, ...printed };
}

describe('the secrets of new keys', () => {
  it('are all in the file, also if each write takes only a few bytes', async () => {
    const write = fs.writeSync;
    jest
      .spyOn(fs, 'writeSync')
      .mockImplementation(((opened: number, bytes: Buffer) => write(opened, bytes.subarray(0, 7))) as typeof write);
    const { failure, stdout, stderr } = await apply();
    expect([failure, readFileSync(out, 'utf8'), statSync(out).mode & 0o777]).toEqual([undefined, LINES, 0o600]);
    expect(stdout + stderr).not.toContain('sk-svc-');
  });

  it.each([
    ['the disk is full', 'writeSync' as const, 'ENOSPC', 'the disk is full'],
    ['the disk fails to keep what was written', 'fsyncSync' as const, 'EIO', 'EIO'],
  ])('are printed if %s, and the command fails', async (_, call, code, why) => {
    jest.spyOn(fs, call).mockImplementation(() => {
      throw Object.assign(new Error(code), { code });
    });
    const { failure, stderr } = await apply();
    expect(failure).toBeInstanceOf(Failure);
    expect((failure as Failure).message).toContain(`3 new keys could not be saved in ${out}: ${why}. Store them`);
    for (const name of NAMES) expect(stderr).toContain(secretOf(name));
  });

  it('are not made if the file cannot be opened', async () => {
    out = join(folder, 'none', 'new-keys.txt');
    const make = jest.fn(() => Promise.resolve());
    const { failure } = await apply(make);
    expect((failure as Failure).message).toBe(
      `${out} cannot be written: there is no such file or directory. Nothing was changed.`,
    );
    expect(make).not.toHaveBeenCalled();
  });

  it('may be lost with the answer, which the failure says', async () => {
    const { failure } = await apply(() => Promise.reject(new Failure('Tollgate does not answer.', 'unreachable')));
    expect((failure as Failure).message).toMatch(
      /Keys may have been made whose secrets were lost\..*tollgate key rotate/,
    );
    expect(fs.existsSync(out)).toBe(false);
  });
});
