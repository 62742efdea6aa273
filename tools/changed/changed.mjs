// `npm test -- --changed[=<ref>]`: runs the test files that the changes since <ref> can reach, including uncommitted
// changes. By default <ref> is the commit where this branch left the default branch.
import { execFileSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { ROOT, SetupError } from '../setup/prepare.mjs';
import { reachedTests } from './reached.mjs';

const MAX_OUTPUT_BYTES = 16 * 1024 * 1024;
const DEFAULT_BRANCHES = ['upstream/HEAD', 'upstream/main', 'origin/HEAD', 'origin/main', 'main'];

/** @param {string} [ref] */
function changedFiles(ref) {
  const named = ref || DEFAULT_BRANCHES.find((branch) => git('rev-parse', '--verify', '--quiet', `${branch}^{commit}`));
  if (named === undefined)
    throw new SetupError('The default branch is unknown. Name the commit to compare with: --changed=<ref>.');
  const base = git('merge-base', named, 'HEAD');
  if (base === undefined) throw new SetupError(`${named} is not a commit, or has no common ancestor with this branch.`);
  const changed = git('diff', '--name-only', '--no-renames', '-z', base);
  const untracked = git('ls-files', '--others', '--exclude-standard', '-z');
  const files = `${changed}\0${untracked}`.split('\0').filter(Boolean);
  return { base, files: [...new Set(files)].sort() };
}

/** The output of a git command, or undefined if it fails. */
function git(...args) {
  try {
    const options = { cwd: ROOT, encoding: 'utf8', maxBuffer: MAX_OUTPUT_BYTES, stdio: ['ignore', 'pipe', 'ignore'] };
    return execFileSync('git', args, options).trim();
  } catch {
    return undefined;
  }
}

const isOurs = (arg) => /^--changed(=|$)/.test(arg);
const args = process.argv.slice(2);
try {
  const { base, files } = changedFiles(args.find(isOurs).split('=')[1]);
  const tests = await reachedTests(files);
  const count = tests === null ? 'all test files' : `${tests.length} test files`;
  process.stderr.write(`${files.length} files changed since ${base.slice(0, 12)} reach ${count}.\n`);
  if (tests?.length !== 0) {
    const patterns = tests?.map((path) => `/${path.replace(/[.[\](){}+*?^$|\\]/g, '\\$&')}$`);
    const { run } = createRequire(join(ROOT, 'package.json'))('jest');
    const rest = args.filter((arg) => !isOurs(arg));
    const config = ['--config', join(ROOT, 'jest.config.mjs')];
    await run([...config, ...rest, ...(patterns ? ['--passWithNoTests', '--testPathPatterns', ...patterns] : [])]);
  }
} catch (error) {
  process.stderr.write(error instanceof SetupError ? `${error.message}\n` : `${error.stack}\n`);
  process.exitCode = 1;
}
