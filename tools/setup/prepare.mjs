// Prepares the checkout for `npm start`, `npm test` and the `tollgate` command: installs dependencies and compiles
// sources. Runs on npm's own Node (20 or newer) and imports only Node. Progress goes to stderr, because stdout belongs
// to the command.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const BUILD_STAMP = join(ROOT, '.build-stamp.json');
const LOCK_WAIT_MS = 200;
const LOCK_STALE_MS = 10 * 60_000;
const say = (line) => process.stderr.write(`${line}\n`);

/**
 * Installs if nothing is installed or the lockfile changed, and compiles changed projects. Returns at once if there is
 * nothing to do.
 */
export async function prepare() {
  requireNode();
  await exclusively(async () => {
    await install();
    await compile();
  });
}

/** Only compiles, for tests that use the installed packages. */
export function compileStale() {
  return exclusively(compile);
}

/** The Node that Tollgate runs on: the npm package `node`, or npm's own Node if it is new enough. */
export function node24() {
  const local = join(ROOT, 'node_modules', 'node', 'bin', 'node');
  if (existsSync(local)) return local;
  if (Number(process.versions.node.split('.')[0]) >= 24) return process.execPath;
  throw new SetupError(
    'Node 24 was not installed with the dependencies. ' +
      'Run `npm ci` with install scripts allowed, or run npm on Node 24.',
  );
}

export class SetupError extends Error {}

function requireNode() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (major < 20 || (major === 20 && minor < 11))
    throw new SetupError(`Node ${process.versions.node} is too old: Tollgate needs Node 20.11 or newer.`);
}

async function install() {
  const wanted = hash(readFileSync(join(ROOT, 'package-lock.json')));
  const stamp = join(ROOT, 'node_modules', '.tollgate-lock');
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return;
  say('Installing dependencies (once; about a minute) …');
  const npm = process.env.npm_execpath?.endsWith('.js') ? [process.execPath, process.env.npm_execpath] : ['npm'];
  await run(npm[0], [
    ...npm.slice(1),
    'ci',
    '--no-audit',
    '--no-fund',
    '--loglevel=error',
    process.stderr.isTTY ? '--progress' : '--no-progress',
  ]);
  writeFileSync(stamp, wanted);
}

async function compile() {
  const now = fingerprints();
  const stale = staleProjects(now);
  if (stale.length === 0) return;
  say(`Building ${stale.length === Object.keys(now).length ? 'everything' : stale.join(', ')} …`);
  await run(node24(), [join('tools', 'build', 'build.mjs'), ...stale]);
  writeFileSync(BUILD_STAMP, JSON.stringify(now));
}

function staleProjects(now) {
  const before = existsSync(BUILD_STAMP) ? JSON.parse(readFileSync(BUILD_STAMP, 'utf8')) : {};
  return Object.keys(now).filter(
    (project) => now[project] !== before[project] || !existsSync(join(ROOT, project, 'dist')),
  );
}

/** The current state of the sources of each project, and of the packages, from which a build may create files. */
export function fingerprints() {
  const tools = fingerprint(join(ROOT, 'tools', 'build')) + hash(readFileSync(join(ROOT, 'package-lock.json')));
  return Object.fromEntries(
    projects().map((project) => {
      const web = join(ROOT, project, 'web');
      const pages = existsSync(web) ? fingerprint(web) : '';
      return [project, hash(tools + fingerprint(join(ROOT, project, 'src')) + pages)];
    }),
  );
}

function projects() {
  return ['libs', 'apps'].flatMap((kind) =>
    readdirSync(join(ROOT, kind))
      .map((name) => `${kind}/${name}`)
      .filter((project) => existsSync(join(ROOT, project, 'src'))),
  );
}

/** The names, sizes and times of all files below a folder. */
function fingerprint(folder) {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name))
    .sort();
  return hash(
    files
      .map((path) => {
        const { size, mtimeMs } = statSync(path);
        return `${path}:${size}:${mtimeMs}`;
      })
      .join('\n'),
  );
}

function hash(data) {
  return createHash('sha256').update(data).digest('hex');
}

/** Two commands on one checkout must not install or compile at the same time. */
async function exclusively(work) {
  const lock = join(ROOT, '.setup-lock');
  for (;;) {
    try {
      mkdirSync(lock);
      break;
    } catch (error) {
      if (error.code !== 'EEXIST')
        throw new SetupError(`${ROOT} is not writable (${error.code}). Fix its permissions.`);
      const info = statSync(lock, { throwIfNoEntry: false });
      if (info && Date.now() - info.mtimeMs > LOCK_STALE_MS) rmSync(lock, { recursive: true, force: true });
      else if (info && !isAlive(readOwner(lock))) rmSync(lock, { recursive: true, force: true });
      else await new Promise((resolve) => setTimeout(resolve, LOCK_WAIT_MS));
    }
  }
  try {
    writeFileSync(join(lock, 'pid'), String(process.pid));
    await work();
  } finally {
    rmSync(lock, { recursive: true, force: true });
  }
}

function readOwner(lock) {
  try {
    return Number(readFileSync(join(lock, 'pid'), 'utf8'));
  } catch {
    return NaN; // just created, and the owner is not written yet
  }
}

/** Whether a process of this machine runs. An unknown number (NaN) counts as running. */
export function isAlive(pid) {
  if (Number.isNaN(pid)) return true;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === 'EPERM';
  }
}

function run(command, args) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd: ROOT, stdio: ['ignore', process.stderr, 'inherit'] });
    child.on('error', (error) => reject(new SetupError(`${command} could not be started: ${error.message}`)));
    child.on('exit', (code) =>
      code === 0
        ? resolve()
        : reject(new SetupError(`${command} ${args.slice(0, 3).join(' ')} failed (exit code ${code}).`)),
    );
  });
}
