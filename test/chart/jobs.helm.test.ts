import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { componentOf, type Manifest, ROOT } from './manifests';

const CHART = join(ROOT, 'deploy/chart');
const JOBS = ['auth', 'billing', 'console', 'metering'].map((service) => `migrate-${service}`);
const MAX_NAME_CHARS = 63;
const MAX_OUTPUT_BYTES = 16 * 1024 * 1024;

/** The name of each job by its component, as Argo CD renders the chart. */
function jobs(set: string, chart = CHART): Record<string, string> {
  const args = ['template', 'tollgate', chart, '--namespace', 'tollgate', '--kube-version', '1.34.0'];
  args.push('--values', join(CHART, 'values-ha.yaml'), '--set', `jobs.hooks=false,${set}`);
  const options = { encoding: 'utf8', maxBuffer: MAX_OUTPUT_BYTES } as const;
  const all = parseAllDocuments(execFileSync(process.env['HELM'] || 'helm', args, { ...options, stdio: 'pipe' }));
  return Object.fromEntries(
    all
      .map((document) => document.toJS() as Manifest | null)
      .flatMap((each) => (each?.kind === 'Job' ? [[componentOf(each), each.metadata.name]] : [])),
  );
}

/** The components of the jobs that have other names. */
const differing = (one: Record<string, string>, other: Record<string, string>) =>
  Object.keys(one)
    .filter((component) => one[component] !== other[component])
    .sort();

describe('without hooks, the name of a job', () => {
  const before = jobs('image.tag=1.0.0');

  it('stays while nothing of the job changes', () => {
    expect(Object.keys(before).sort()).toEqual(['load-functions', ...JOBS, 'roles', 'topics']);
    expect(jobs('image.tag=1.0.0,gateway.replicas=9')).toEqual(before);
  });

  it('is another one for another image, because a job cannot be changed', () => {
    expect(differing(before, jobs('image.tag=1.0.1'))).toEqual(['load-functions', ...JOBS, 'topics']);
    expect(differing(before, jobs('image.tag=1.0.0,podLabels.a=b'))).toEqual(Object.keys(before).sort());
  });

  it('is another one for another roles.sql', () => {
    const directory = mkdtempSync(join(tmpdir(), 'tollgate-chart-'));
    const chart = join(directory, 'chart');
    cpSync(CHART, chart, { recursive: true });
    // The copy has a link to the file of the repository.
    rmSync(join(chart, 'files/roles.sql'));
    writeFileSync(join(chart, 'files/roles.sql'), '-- Another one.');
    const other = jobs('image.tag=1.0.0', chart);
    rmSync(directory, { recursive: true });
    expect(differing(before, other)).toEqual(['roles']);
  });

  it('is never too long', () => {
    const names = Object.values(jobs(`image.tag=1.0.0,fullnameOverride=${'a'.repeat(40)}`));
    expect(Math.max(...names.map((name) => name.length))).toBe(MAX_NAME_CHARS);
  });
});
