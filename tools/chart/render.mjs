// Renders the chart with each of its values files. As a program it writes the golden manifests of test/chart/golden,
// which are reviewed as diffs: node tools/chart/render.mjs. Needs helm, in PATH or as the variable HELM.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { globSync, readFileSync, realpathSync, statSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

const ROOT = resolve(import.meta.dirname, '..', '..');
export const CHART = join(ROOT, 'deploy', 'chart');
const GOLDEN = join(ROOT, 'test', 'chart', 'golden');
/** Helm assumes an old one if it is not connected to a cluster. */
const KUBERNETES_VERSION = '1.34.0';
const RENDER_TIMEOUT_MS = 60_000;
const MAX_OUTPUT_BYTES = 16 * 1024 * 1024;

/** Each golden manifest, with the values that it is rendered with. */
export const VALUES = {
  dev: join(CHART, 'values-dev.yaml'),
  ha: join(CHART, 'values-ha.yaml'),
  ingress: join(ROOT, 'test', 'chart', 'values-ingress.yaml'),
};

export const goldenFile = (name) => join(GOLDEN, `${name}.yaml`);
const helm = () => process.env.HELM || 'helm';

/** Whether there is a helm. */
export function hasHelm() {
  try {
    execFileSync(helm(), ['version', '--short'], { stdio: 'ignore', timeout: RENDER_TIMEOUT_MS });
    return true;
  } catch {
    return false;
  }
}

/**
 * Helm's output, or its refusal as an Error.
 * @param {readonly string[]} args
 */
export function runHelm(...args) {
  const options = { encoding: 'utf8', timeout: RENDER_TIMEOUT_MS, maxBuffer: MAX_OUTPUT_BYTES };
  return execFileSync(helm(), args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] });
}

/** The manifests of the chart with these values, below the hash of what they were made from. */
export function render(name) {
  const args = ['template', 'tollgate', CHART, '--namespace', 'tollgate', '--kube-version', KUBERNETES_VERSION];
  return `# made from ${sourcesHash(name)}\n${runHelm(...args, '--values', VALUES[name])}`;
}

/** A hash of everything that a golden manifest is made from. Without helm it shows one that is out of date. */
export function sourcesHash(name) {
  const hash = createHash('sha256');
  const files = globSync('**/*', { cwd: CHART }).filter((path) => !/^values-/.test(path));
  for (const path of [...files.sort().map((file) => join(CHART, file)), VALUES[name]]) {
    if (statSync(path).isFile()) hash.update(path.slice(ROOT.length)).update(readFileSync(realpathSync(path)));
  }
  return hash.digest('hex').slice(0, 16);
}

if (process.argv[1] === import.meta.filename) {
  for (const name of Object.keys(VALUES)) writeFileSync(goldenFile(name), render(name));
}
