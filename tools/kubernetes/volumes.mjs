// Volumes for the stores of a trial, on a cluster that makes none itself: folders of its first node.
import { apply, kubectl } from './cluster.mjs';

const CLASS = 'tollgate-trial';
const LABELS = { 'app.kubernetes.io/part-of': CLASS };
const FOLDER = '/var/lib/tollgate-trial';
const STORES = ['postgres', 'redis', 'kafka'];
const SIZE = '4Gi';
const MADE_TIMEOUT = '120s';

/**
 * Makes sure that claims of volumes are met.
 * @returns {Promise<string[]>} the settings of the chart that make the claims
 */
export async function storageSettings({ namespace, image }) {
  const { items } = JSON.parse(await kubectl(['get', 'storageclasses', '-o', 'json']));
  const isDefault = ({ metadata }) => metadata.annotations?.['storageclass.kubernetes.io/is-default-class'] === 'true';
  if (items.some(isDefault)) return [`devStores.storage=${SIZE}`];
  if (!items.some(({ metadata }) => metadata.name === CLASS)) await makeFolders({ namespace, image });
  return [`devStores.storage=${SIZE}`, `devStores.storageClassName=${CLASS}`];
}

async function makeFolders({ namespace, image }) {
  const nodes = JSON.parse(await kubectl(['get', 'nodes', '-o', 'json']));
  const { name: node } = nodes.items[0].metadata;
  const folder = `${FOLDER}/${Date.now()}`;
  // The kubelet creates the folders for a pod that uses them.
  await apply(namespace, [
    {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: CLASS, labels: LABELS },
      spec: {
        restartPolicy: 'Never',
        nodeName: node,
        containers: [
          {
            name: 'folders',
            image,
            imagePullPolicy: 'IfNotPresent',
            command: ['true'],
            volumeMounts: STORES.map((store) => ({ name: store, mountPath: `/${store}` })),
          },
        ],
        volumes: STORES.map((store) => ({
          name: store,
          hostPath: { path: `${folder}/${store}`, type: 'DirectoryOrCreate' },
        })),
      },
    },
  ]);
  const succeeded = '--for=jsonpath={.status.phase}=Succeeded';
  await kubectl(['-n', namespace, 'wait', succeeded, `pod/${CLASS}`, `--timeout=${MADE_TIMEOUT}`]);
  await kubectl(['-n', namespace, 'delete', 'pod', CLASS]);
  await apply(namespace, [
    {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'StorageClass',
      metadata: { name: CLASS, labels: LABELS },
      provisioner: 'kubernetes.io/no-provisioner',
      volumeBindingMode: 'WaitForFirstConsumer',
    },
    ...STORES.map((store) => ({
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: { name: `${CLASS}-${store}`, labels: LABELS },
      spec: {
        capacity: { storage: SIZE },
        accessModes: ['ReadWriteOnce'],
        storageClassName: CLASS,
        persistentVolumeReclaimPolicy: 'Retain',
        local: { path: `${folder}/${store}` },
        nodeAffinity: {
          required: {
            nodeSelectorTerms: [
              { matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In', values: [node] }] },
            ],
          },
        },
      },
    })),
  ]);
}
