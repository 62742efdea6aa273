// Messages that a consumer could not accept, as Kafka's administrator sees them from inside the cluster.
import { SetupError } from '../../setup/prepare.mjs';
import { apply, kubectl } from '../cluster.mjs';

const NAME = 'tollgate-trial-dead';
const LISTED_TIMEOUT = '120s';

/** Rejects if there are any. */
export async function noDeadLetters({ namespace, release, image }) {
  const env = {
    KAFKA_BROKERS: `${release}-kafka:9094`,
    KAFKA_SASL_MECHANISM: 'plain',
    KAFKA_USERNAME: 'admin',
    KAFKA_PASSWORD_FILE: '/secrets/password',
  };
  const container = {
    name: 'dead',
    image,
    imagePullPolicy: 'IfNotPresent',
    args: ['dead', 'list', '--json'],
    env: Object.entries(env).map(([name, value]) => ({ name, value })),
    volumeMounts: [{ name: 'secrets', mountPath: '/secrets', readOnly: true }],
  };
  // The policies let pods with the labels of the job `topics` reach Kafka's administration.
  const labels = {
    'app.kubernetes.io/name': 'tollgate',
    'app.kubernetes.io/instance': release,
    'app.kubernetes.io/component': 'topics',
  };
  const pod = (...args) => kubectl(['-n', namespace, ...args]);
  await pod('delete', 'pod', NAME, '--ignore-not-found');
  await apply(namespace, [
    {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: NAME, labels },
      spec: {
        restartPolicy: 'Never',
        enableServiceLinks: false,
        containers: [container],
        volumes: [{ name: 'secrets', secret: { secretName: 'tollgate-kafka-admin' } }],
      },
    },
  ]);
  await pod('wait', '--for=jsonpath={.status.phase}=Succeeded', `pod/${NAME}`, `--timeout=${LISTED_TIMEOUT}`);
  const letters = JSON.parse(await pod('logs', NAME));
  await pod('delete', 'pod', NAME);
  if (letters.length > 0)
    throw new SetupError(`${letters.length} messages were quarantined, the first for: ${letters[0].reason}`);
}
