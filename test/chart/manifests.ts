import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseAllDocuments } from 'yaml';

export const ROOT = resolve(__dirname, '../..');
export const GOLDEN = ['dev', 'ha', 'ingress'] as const;
export type Golden = (typeof GOLDEN)[number];

export interface Container {
  name: string;
  image: string;
  command?: string[];
  args?: string[];
  env?: { name: string; value?: string }[];
  ports?: { name: string; containerPort: number }[];
  securityContext: Record<string, unknown>;
  resources: { limits?: Record<string, string> };
  volumeMounts?: { name: string; mountPath: string }[];
}

export interface PodSpec {
  automountServiceAccountToken?: boolean;
  enableServiceLinks?: boolean;
  securityContext: Record<string, unknown>;
  terminationGracePeriodSeconds?: number;
  containers: Container[];
  volumes?: { name: string; configMap?: { name: string } }[];
}

export interface Manifest {
  kind: string;
  metadata: { name: string; labels: Record<string, string>; annotations?: Record<string, string> };
  spec: Record<string, unknown>;
  data?: Record<string, string>;
}

const COMPONENT = 'app.kubernetes.io/component';

/** The objects of a golden manifest. */
export function manifests(name: Golden): Manifest[] {
  const text = readFileSync(join(ROOT, 'test/chart/golden', `${name}.yaml`), 'utf8');
  return parseAllDocuments(text)
    .map((document) => document.toJS() as Manifest | null)
    .filter((manifest) => manifest !== null);
}

export const componentOf = ({ metadata }: Manifest): string => metadata.labels[COMPONENT]!;
export const componentIn = (selector: { matchLabels?: Record<string, string> }): string | undefined =>
  selector.matchLabels?.[COMPONENT];

/** Every pod that an object makes or is. */
export function podOf({ kind, spec }: Manifest): PodSpec | undefined {
  if (kind === 'Pod') return spec as unknown as PodSpec;
  return (spec?.['template'] as { spec: PodSpec } | undefined)?.spec;
}

export const pods = (name: Golden): { component: string; pod: PodSpec; manifest: Manifest }[] =>
  manifests(name).flatMap((manifest) => {
    const pod = podOf(manifest);
    return pod ? [{ component: componentOf(manifest), pod, manifest }] : [];
  });

/** The variables of a container with a literal value. */
export const variables = ({ env = [] }: Container): Record<string, string | undefined> =>
  Object.fromEntries(env.map(({ name, value }) => [name, value]));

/** The one object of a kind and name. */
export function only(name: Golden, kind: string, component: string): Manifest {
  const found = manifests(name).filter((each) => each.kind === kind && componentOf(each) === component);
  if (found.length !== 1) throw new Error(`${name} has ${found.length} of ${kind} ${component}`);
  return found[0]!;
}
