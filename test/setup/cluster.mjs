// Finds out whether tests that need a Kubernetes cluster (*.cluster.test.ts) can run here.
import { globSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '..', '..');

/**
 * Returns the patterns of the test files to leave out. They install and remove releases and end pods, so KUBECONFIG is
 * not enough: TOLLGATE_CLUSTER_TRIALS must say that the cluster is for trials. Otherwise a line on stderr reports it.
 * @returns {string[]}
 */
export function testsWithoutCluster() {
  if (process.env.TOLLGATE_CLUSTER_TRIALS === 'true') return [];
  const count = globSync('test/**/*.cluster.test.ts', { cwd: ROOT }).length;
  process.stderr.write(
    `${count} test file (*.cluster.test.ts) is left out: TOLLGATE_CLUSTER_TRIALS is not "true". ` +
      'As root, deploy/ci/cluster.sh makes a cluster for it.\n',
  );
  return ['\\.cluster\\.test\\.ts$'];
}
