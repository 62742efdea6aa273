// node tools/checks/former-contracts.mjs <commit>: keeps the types of the messages and requests of that version, without
// comments, for test/upgrade/skew.test.ts. Run it with the last release once the services may skip no version before it.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import ts from 'typescript';
import { ROOT } from '../setup/prepare.mjs';

const CONTRACTS = 'libs/contracts/src';
const KEPT = join(ROOT, 'test/upgrade/former-version/contracts');
const ENTRIES = ['events.ts', 'subjects.ts', 'topics.ts'];
const [commit] = process.argv.slice(2);
if (!commit) throw new Error('Name a commit: node tools/checks/former-contracts.mjs <commit>');

const folder = mkdtempSync(join(tmpdir(), 'former-contracts-'));
try {
  const archive = execFileSync('git', ['archive', commit, CONTRACTS], { cwd: ROOT });
  execFileSync('tar', ['-x', '-C', folder], { input: archive });
  rmSync(KEPT, { recursive: true, force: true });
  const source = join(folder, CONTRACTS);
  const { config } = ts.readConfigFile(join(ROOT, 'tsconfig.base.json'), ts.sys.readFile);
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, ROOT);
  const emit = { noEmit: false, declaration: true, emitDeclarationOnly: true, removeComments: true };
  const program = ts.createProgram(
    ENTRIES.map((name) => join(source, name)),
    { ...options, ...emit, module: ts.ModuleKind.Preserve, moduleResolution: ts.ModuleResolutionKind.Bundler },
  );
  // Files of libs/contracts import nothing but each other.
  program.emit(undefined, (file, text) => ts.sys.writeFile(join(KEPT, file.slice(source.length + 1)), text));
} finally {
  rmSync(folder, { recursive: true });
}
execFileSync(process.execPath, [join(ROOT, 'node_modules/prettier/bin/prettier.cjs'), '--write', KEPT]);
