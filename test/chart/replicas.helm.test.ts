import { execFile } from 'node:child_process';
import { createServer, type Server } from 'node:http';
import { type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { parseAllDocuments } from 'yaml';
import { componentOf, type Manifest, ROOT } from './manifests';

const CHART = join(ROOT, 'deploy/chart');
const MAX_OUTPUT_BYTES = 16 * 1024 * 1024;
const SCALED = 'gateway.autoscaling.enabled=true,gateway.autoscaling.minReplicas=3';
const DEPLOYMENTS = '/apis/apps/v1/namespaces/tollgate/deployments/';

// Replaced: Kubernetes, by a server that knows the Deployments that the chart looks up.
describe('the number of gateways', () => {
  /** Of the Deployment in the cluster. Undefined: there is none. */
  let live: number | undefined;
  let cluster: Server;

  beforeAll(async () => {
    cluster = createServer(({ url = '' }, response) => {
      const answer = (status: number, body: object) =>
        response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
      const resource = { name: 'deployments', namespaced: true, kind: 'Deployment', verbs: ['get'] };
      const list = { kind: 'APIResourceList', apiVersion: 'v1', groupVersion: 'apps/v1', resources: [resource] };
      const deployment = { kind: 'Deployment', apiVersion: 'apps/v1', spec: { replicas: live } };
      if (!url.startsWith(DEPLOYMENTS)) answer(200, list);
      else if (url !== `${DEPLOYMENTS}tollgate-gateway` || live === undefined)
        answer(404, { kind: 'Status', apiVersion: 'v1', status: 'Failure', reason: 'NotFound', code: 404 });
      else answer(200, deployment);
    });
    await new Promise<void>((done) => cluster.listen(0, '127.0.0.1', done));
  });
  afterAll(() => new Promise((done) => cluster.close(done)));

  async function rendered(set: string, ...options: string[]): Promise<unknown> {
    const args = ['template', 'tollgate', CHART, '--namespace', 'tollgate', '--kube-version', '1.34.0'];
    args.push('--values', join(CHART, 'values-dev.yaml'), '--set', set, ...options);
    const { stdout } = await promisify(execFile)(process.env['HELM'] || 'helm', args, { maxBuffer: MAX_OUTPUT_BYTES });
    const all = parseAllDocuments(stdout).map((document) => document.toJS() as Manifest | null);
    return all.find((each) => each?.kind === 'Deployment' && componentOf(each) === 'gateway')!.spec['replicas'];
  }
  const inCluster = (set: string) => {
    const { port } = cluster.address() as AddressInfo;
    return rendered(set, '--dry-run=server', '--kube-apiserver', `http://127.0.0.1:${port}`);
  };

  it.each([
    ['that of the cluster with an autoscaler', SCALED, 7, 7],
    ['the fewest pods of the autoscaler, if the cluster has fewer', SCALED, 2, 3],
    ['left to Kubernetes and the autoscaler at an install', SCALED, undefined, undefined],
    ['that of the values without an autoscaler', 'gateway.replicas=2', 7, 2],
  ])('is %s', async (_, set, ofCluster, expected) => {
    live = ofCluster;
    expect(await inCluster(set)).toBe(expected);
  });

  it('is left out with an autoscaler if there is no cluster, as for Argo CD', async () => {
    expect(await rendered(SCALED)).toBeUndefined();
  });
});
