// node tools/checks/former-contracts.mjs <commit>: keeps the types of the messages and requests of that version,
// without comments, and the code with which its consumers judge a message, for test/upgrade/skew.test.ts. Each kept
// file begins with the commit, which the test of two running versions builds. Run it with the last release once the
// services may skip no version before it.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { rolldown } from 'rolldown';
import ts from 'typescript';
import { ROOT } from '../setup/prepare.mjs';

const CONTRACTS = 'libs/contracts/src';
const KEPT = join(ROOT, 'test/upgrade/former-version/contracts');
const KEPT_CHECKS = join(ROOT, 'test/upgrade/former-version/checks.cjs');
const MAX_ARCHIVE_BYTES = 256 * 1_024 * 1_024;
/** What the consumers judge messages with, by its name in that version, and where it was. */
const CHECKS = {
  validateUsageEvent: 'apps/metering/src/consume/read-usage-event.ts',
  readCharge: 'apps/billing/src/gather/read-charge.ts',
  validateBalanceUpdate: 'libs/admission/src/balance-update.ts',
  validateTenantUpdate: 'apps/billing/src/tenants/tenant-status.ts',
};
const ENTRIES = ['events.ts', 'subjects.ts', 'topics.ts'];
const [named] = process.argv.slice(2);
if (!named) throw new Error('Name a commit: node tools/checks/former-contracts.mjs <commit>');
/** Whole, whatever names it. */
const commit = execFileSync('git', ['rev-parse', '--verify', `${named}^{commit}`], {
  cwd: ROOT,
  encoding: 'utf8',
}).trim();

const folder = mkdtempSync(join(tmpdir(), 'former-contracts-'));
try {
  const files = ['apps', 'libs', 'tsconfig.base.json'];
  const archive = execFileSync('git', ['archive', commit, ...files], { cwd: ROOT, maxBuffer: MAX_ARCHIVE_BYTES });
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
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  await keepChecks();
} finally {
  rmSync(folder, { recursive: true });
}
for (const file of [KEPT_CHECKS, ...readdirSync(KEPT).map((name) => join(KEPT, name))])
  writeFileSync(
    file,
    `// Of commit ${commit}. Kept by tools/checks/former-contracts.mjs.\n${readFileSync(file, 'utf8')}`,
  );
const prettier = join(ROOT, 'node_modules/prettier/bin/prettier.cjs');
execFileSync(process.execPath, [prettier, '--write', KEPT, KEPT_CHECKS]);

/** Creates one file of the checks and of what they call. It may need nothing but Node. */
async function keepChecks() {
  const input = join(folder, 'checks.ts');
  const lines = Object.entries(CHECKS).map(([name, path]) => `export { ${name} } from './${path.replace('.ts', '')}';`);
  writeFileSync(input, lines.join('\n'));
  const bundle = await rolldown({
    input,
    external: (id) => !/^[./]|^@tollgate\/contracts$/.test(id),
    resolve: { alias: { '@tollgate/contracts': join(folder, CONTRACTS, 'index.ts') } },
    treeshake: { moduleSideEffects: false },
    // Otherwise the file would name the temporary folder.
    experimental: { attachDebugInfo: 'none' },
    plugins: [{ name: 'without-decorated-classes', transform: withoutDecoratedClasses }],
  });
  const { output } = await bundle.write({ file: KEPT_CHECKS, format: 'cjs', comments: false });
  const foreign = output.flatMap(({ imports = [] }) => imports).filter((name) => !name.startsWith('node:'));
  if (foreign.length > 0) throw new Error(`The checks need ${foreign.join(', ')}`);
}

/** Classes of Nest beside the checks: decorators are effects, which would keep them. */
function withoutDecoratedClasses(text, id) {
  if (!id.endsWith('.ts')) return null;
  const file = ts.createSourceFile(id, text, ts.ScriptTarget.Latest, true);
  const classes = file.statements.filter(
    (each) => ts.isClassDeclaration(each) && ts.canHaveDecorators(each) && (ts.getDecorators(each) ?? []).length > 0,
  );
  return classes.reduceRight((rest, each) => rest.slice(0, each.getStart()) + rest.slice(each.getEnd()), text);
}
