// Finds the test files that a change can reach.
import { execFile } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join, posix } from 'node:path';
import { promisify } from 'node:util';
import { ROOT } from '../setup/prepare.mjs';

const load = createRequire(import.meta.url);
const NX = join(dirname(load.resolve('nx/package.json')), load('nx/package.json').bin.nx);
const MAX_OUTPUT_BYTES = 16 * 1024 * 1024;
/** Fast tests that read the whole repository. */
const ALWAYS = /^test\/(docs|upgrade|runs)\/|^test\/surfaces\/generated-docs\.test\.ts$/;
const PROJECT_FILE = /^((?:apps|libs)\/[^/]+)\//;
const NAMED_PROJECTS = /(?:@tollgate|\b(?:apps|libs))\/([a-z]+)/g;
const COMMENT = /\/\*[^]*?\*\/|\/\/.*$/gm;
const RELATIVE_IMPORT = /'(\.\.?\/[^']+)'/g;
const PYTHON_IMPORT = /^from (\w+) import/gm;
/** Files that start a deployment without naming its parts, with the projects that they start. */
const SERVICES = ['gateway', 'auth', 'metering', 'billing', 'console'];
const STARTED = {
  'test/services/service-process.ts': SERVICES,
  'test/e2e/composed.ts': [...SERVICES, 'simulator', 'cli'],
  'test/stack/stack-process.ts': [...SERVICES, 'simulator', 'cli'],
};

/**
 * Returns the test files that a change of these files can reach, or null for all.
 * - A file of apps or libs reaches the unit tests of every project that Nx reports as affected, and the black-box tests
 *   that import or start one of these projects.
 * - A file of test reaches the tests that use it.
 * - A Markdown file reaches the tests that read Markdown.
 * - Any other file (tools, deploy, the lockfile, test/setup) reaches all tests.
 * @param {string[]} changed paths from the root
 * @returns {Promise<string[] | null>} sorted
 */
export async function reachedTests(changed) {
  const isDocument = (path) => path.endsWith('.md');
  const code = changed.filter((path) => !isDocument(path));
  const ofProjects = code.filter((path) => PROJECT_FILE.test(path));
  const ofTests = code.filter((path) => path.startsWith('test/') && !path.startsWith('test/setup/'));
  if (ofProjects.length + ofTests.length < code.length) return null;

  const affected = await affectedProjects(ofProjects);
  const isReached = (path) => {
    const project = PROJECT_FILE.exec(path)?.[1];
    const files = project === undefined ? partsOf(path) : [path];
    if (changed.some(isDocument) && files.some(readsDocuments)) return true;
    if (project !== undefined) return affected.has(basename(project));
    if (files.some((file) => ofTests.includes(file))) return true;
    return [...projectsOf(files)].some((name) => affected.has(name));
  };
  const all = globSync('{apps,libs,test}/**/*.test.ts', {
    cwd: ROOT,
    exclude: (path) => /(^|\/)(node_modules|dist)(\/|$)/.test(path),
  });
  return changed.length === 0 ? [] : all.filter((path) => ALWAYS.test(path) || isReached(path)).sort();
}

/** The projects of these files and all that depend on them, by their names without the scope. */
async function affectedProjects(files) {
  if (files.length === 0) return new Set();
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [NX, 'show', 'projects', '--affected', `--files=${files.join()}`, '--json'],
    { cwd: ROOT, maxBuffer: MAX_OUTPUT_BYTES },
  );
  return new Set(JSON.parse(stdout).map((name) => name.replace('@tollgate/', '')));
}

/** A test and the files below test/ that it uses, directly or not: it imports them, or names them in its own folder. */
function partsOf(path, found = new Set()) {
  if (found.has(path)) return [...found];
  found.add(path);
  const text = textOf(path);
  for (const [, specifier] of text.matchAll(RELATIVE_IMPORT)) {
    const target = posix.join(posix.dirname(path), specifier);
    const file = [target, `${target}.ts`, `${target}/index.ts`].find(isTestFile);
    if (file !== undefined) partsOf(file, found);
  }
  if (path.endsWith('.py'))
    for (const [, module] of text.matchAll(PYTHON_IMPORT)) {
      const file = posix.join(posix.dirname(path), `${module}.py`);
      if (isTestFile(file)) partsOf(file, found);
    }
  for (const beside of filesOf(dirname(path))) if (text.includes(`'${basename(beside)}'`)) partsOf(beside, found);
  return [...found];
}

const readsDocuments = (path) => /\.md\b|\bdocs\//.test(textOf(path).replace(COMMENT, ''));

/** The projects that these files import or start. */
function projectsOf(files) {
  const texts = files.map(textOf).join('\n');
  const named = [...texts.matchAll(NAMED_PROJECTS)].map(([, name]) => name);
  return new Set([...named, ...files.flatMap((file) => STARTED[file] ?? [])]);
}

const texts = new Map();
function textOf(path) {
  if (!texts.has(path)) texts.set(path, readFileSync(join(ROOT, path), 'utf8'));
  return texts.get(path);
}

let testFiles;
const ofTestFolder = () =>
  (testFiles ??= new Set(
    globSync('test/**', { cwd: ROOT, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => posix.relative(ROOT, join(entry.parentPath, entry.name))),
  ));
const isTestFile = (path) => ofTestFolder().has(path);
const filesOf = (folder) => [...ofTestFolder()].filter((path) => dirname(path) === folder);
