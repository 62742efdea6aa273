import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { componentOf, type Manifest, ROOT } from './manifests';

const CHART = join(ROOT, 'deploy/chart');
const MAX_OUTPUT_BYTES = 16 * 1024 * 1024;
const ARGS = ['--namespace', 'tollgate', '--kube-version', '1.34.0', '--values', '-'];
/** The least that an install needs. */
const REQUIRED = { config: 'models: []', kafka: { brokers: 'kafka:9092' }, postgres: { host: 'postgres' } };

type Values = Record<string, object | string | number | boolean>;

/** The objects that helm makes with these values, as in a file of values. Throws helm's refusal. */
export function rendered(values: Values, release = 'tollgate'): Manifest[] {
  const kafka = { ...REQUIRED.kafka, ...(values['kafka'] as object | undefined) };
  const text = execFileSync(process.env['HELM'] || 'helm', ['template', release, CHART, ...ARGS], {
    input: JSON.stringify({ ...REQUIRED, ...values, kafka }),
    encoding: 'utf8',
    maxBuffer: MAX_OUTPUT_BYTES,
    stdio: 'pipe',
  });
  return parseAllDocuments(text).flatMap((document) => {
    // Such as two values of one key, which helm does not mind.
    if (document.errors[0]) throw document.errors[0];
    return (document.toJS() as Manifest | null) ?? [];
  });
}

/** The one object of a kind and component among these. */
export function onlyOf(objects: readonly Manifest[], kind: string, component: string): Manifest {
  const found = objects.filter((each) => each.kind === kind && componentOf(each) === component);
  if (found.length !== 1) throw new Error(`there are ${found.length} of ${kind} ${component}`);
  return found[0]!;
}
