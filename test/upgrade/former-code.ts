import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { Code } from '../services/service-process';
import { runTollgate } from '../surfaces/tollgate-process';

const ROOT = resolve(__dirname, '../..');
const KEPT = ['apps', 'libs', 'tools/build', 'package.json', 'tollgate.yaml'];
const APPS = ['auth', 'metering', 'billing', 'gateway', 'cli'];
const MAX_ARCHIVE_BYTES = 256 * 1_024 * 1_024;

/**
 * The commit of the former version. The files that are kept of it name it in their first line, which
 * tools/checks/former-contracts.mjs writes.
 */
function formerCommit(): string {
  const kept = readFileSync(join(__dirname, 'former-version/checks.cjs'), 'utf8');
  return /^\/\/ Of commit ([0-9a-f]{40})\. /.exec(kept)![1]!;
}

/**
 * The former version, built from its sources in the history, in a temporary folder. It runs with the packages that are
 * installed here.
 */
export class FormerCode implements Code {
  readonly root = mkdtempSync(join(tmpdir(), 'tollgate-former-'));
  /** Files of another folder would stay in the compile cache of the tests. */
  readonly env = { NODE_COMPILE_CACHE: join(this.root, '.compile-cache') };

  build(): void {
    const archive = execFileSync('git', ['archive', formerCommit(), ...KEPT], {
      cwd: ROOT,
      maxBuffer: MAX_ARCHIVE_BYTES,
    });
    execFileSync('tar', ['-x', '-C', this.root], { input: archive });
    const libs = readdirSync(join(this.root, 'libs')).map((name) => `libs/${name}`);
    const projects = [...libs, ...APPS.map((name) => `apps/${name}`)];
    this.link(projects);
    execFileSync(process.execPath, ['tools/build/build.mjs', ...projects], { cwd: this.root });
  }

  /** Runs its `tollgate` command. Rejects unless it succeeds. */
  async tollgate(args: string[], env: Record<string, string> = {}): Promise<void> {
    const { code, stderr } = await runTollgate(args, { ...this.env, ...env }, this.root);
    if (code !== 0) throw new Error(`the former tollgate ${args.join(' ')} failed:\n${stderr}`);
  }

  remove(): void {
    rmSync(this.root, { recursive: true, force: true });
  }

  /** Gives it the installed packages, and its own projects as `@tollgate/…`. */
  private link(projects: readonly string[]): void {
    const own = join(this.root, 'node_modules', '@tollgate');
    mkdirSync(own, { recursive: true });
    for (const project of projects) symlinkSync(join(this.root, project), join(own, project.split('/')[1]!));
    for (const name of readdirSync(join(ROOT, 'node_modules')))
      if (name !== '@tollgate') symlinkSync(join(ROOT, 'node_modules', name), join(this.root, 'node_modules', name));
    for (const project of projects) {
      const installed = join(ROOT, project, 'node_modules');
      if (existsSync(installed)) symlinkSync(installed, join(this.root, project, 'node_modules'));
    }
  }
}
