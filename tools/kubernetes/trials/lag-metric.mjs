// The lag of metering as an external metric of the cluster, for trials on clusters without KEDA or another adapter.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeCertificates } from '../../stack/certificates.mjs';
import { apply, kubectl } from '../cluster.mjs';

const NAME = 'tollgate-lag-metric';
const PORT = 8443;
const READY_TIMEOUT = '120s';
const METRICS_SECRET = 'tollgate-metrics';
export const LAG_METRIC = 'tollgate-usage-events-lag';
/** The pods that may ask for metrics, where the cluster enforces policies. */
export const READERS = [{ podSelector: { matchLabels: { app: NAME } } }];

/** The lag as the API server knows it, or null while no pod of metering answers. */
export async function lagOf({ namespace }) {
  const path = `/apis/external.metrics.k8s.io/v1beta1/namespaces/${namespace}/${LAG_METRIC}`;
  try {
    return Number(JSON.parse(await kubectl(['get', '--raw', path])).items[0].value);
  } catch {
    return null;
  }
}

/** Starts the adapter and registers it with the API server. */
export async function installLagMetric({ namespace, release, image }, directory) {
  await makeCertificates(directory);
  const read = (name) => readFileSync(join(directory, name), 'base64');
  const labels = { app: NAME };
  const metadata = { name: NAME, labels };
  const meteringPods = {
    'app.kubernetes.io/instance': release,
    'app.kubernetes.io/component': 'metering',
  };
  const env = { SERVICE: `http://${NAME}-source:9090`, METRIC: LAG_METRIC, TOPIC: 'usage-events', GROUP: 'metering' };
  const container = {
    name: 'adapter',
    image,
    imagePullPolicy: 'IfNotPresent',
    command: ['node', '/script/lag-adapter.mjs'],
    env: Object.entries(env).map(([name, value]) => ({ name, value })),
    ports: [{ containerPort: PORT }],
    readinessProbe: { tcpSocket: { port: PORT }, periodSeconds: 1 },
    volumeMounts: [
      { name: 'script', mountPath: '/script' },
      { name: 'tls', mountPath: '/tls' },
      { name: 'metrics', mountPath: '/metrics' },
    ],
  };
  const volumes = [
    { name: 'script', configMap: { name: NAME } },
    { name: 'tls', secret: { secretName: NAME } },
    { name: 'metrics', secret: { secretName: METRICS_SECRET } },
  ];
  await apply(namespace, [
    {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata,
      data: { 'lag-adapter.mjs': readFileSync(new URL('lag-adapter.mjs', import.meta.url), 'utf8') },
    },
    // Any certificate will do: the API server is told not to check it.
    {
      apiVersion: 'v1',
      kind: 'Secret',
      type: 'kubernetes.io/tls',
      metadata,
      data: { 'tls.crt': read('tls-kafka-cert'), 'tls.key': read('tls-kafka-key') },
    },
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata,
      spec: {
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: { containers: [container], volumes } },
      },
    },
    service(NAME, labels, { port: 443, targetPort: PORT }),
    // Pods that start answer too: a backlog is known before they are ready.
    { ...service(`${NAME}-source`, meteringPods, { port: 9090 }, { publishNotReadyAddresses: true }) },
    {
      apiVersion: 'apiregistration.k8s.io/v1',
      kind: 'APIService',
      metadata: { name: 'v1beta1.external.metrics.k8s.io', labels },
      spec: {
        group: 'external.metrics.k8s.io',
        version: 'v1beta1',
        groupPriorityMinimum: 100,
        versionPriority: 100,
        insecureSkipTLSVerify: true,
        service: { name: NAME, namespace },
      },
    },
  ]);
  await kubectl(['-n', namespace, 'rollout', 'status', `deployment/${NAME}`, `--timeout=${READY_TIMEOUT}`]);
}

export async function removeLagMetric({ namespace }) {
  await kubectl(['delete', 'apiservice', '-l', `app=${NAME}`, '--ignore-not-found']);
  const kinds = 'deployment,service,configmap,secret';
  await kubectl(['-n', namespace, 'delete', kinds, '-l', `app=${NAME}`, '--ignore-not-found']);
}

const service = (name, selector, port, more = {}) => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name, labels: { app: NAME } },
  spec: { selector, ports: [port], ...more },
});
