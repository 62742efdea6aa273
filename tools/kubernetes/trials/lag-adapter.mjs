// Serves the lag of a consumer group as an external metric (external.metrics.k8s.io), in a pod of a trial. It asks one
// of the pods behind SERVICE for its /metrics, which cover all replicas.
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';

const GROUP_VERSION = 'external.metrics.k8s.io/v1beta1';
const { SERVICE, METRIC, TOPIC, GROUP } = process.env;
const PORT = 8443;
const ANSWER_TIMEOUT_MS = 5_000;
const FAMILY = 'tollgate_messages_waiting';

const tls = { cert: readFileSync('/tls/tls.crt'), key: readFileSync('/tls/tls.key') };
createServer(tls, (request, response) => {
  answer(request.url)
    .then((body) => response.setHeader('content-type', 'application/json').end(JSON.stringify(body)))
    .catch((error) => response.writeHead(503).end(String(error)));
}).listen(PORT);

async function answer(url) {
  const resource = { name: METRIC, namespaced: true, kind: 'ExternalMetricValueList', verbs: ['get'] };
  if (!url.includes('/namespaces/'))
    return { kind: 'APIResourceList', apiVersion: 'v1', groupVersion: GROUP_VERSION, resources: [resource] };
  const value = String(await lag());
  const item = { metricName: METRIC, metricLabels: {}, timestamp: new Date().toISOString(), value };
  return { kind: 'ExternalMetricValueList', apiVersion: GROUP_VERSION, metadata: {}, items: [item] };
}

async function lag() {
  const metrics = await fetch(`${SERVICE}/metrics`, {
    headers: { authorization: `Bearer ${readFileSync('/metrics/token', 'utf8').trim()}` },
    signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS),
  });
  if (!metrics.ok) throw new Error(`${SERVICE} answered ${metrics.status}`);
  const line = (await metrics.text())
    .split('\n')
    .find((each) => each.startsWith(FAMILY) && each.includes(`"${TOPIC}"`) && each.includes(`"${GROUP}"`));
  if (line === undefined) throw new Error(`${SERVICE} does not know the lag of ${GROUP}`);
  return Number(line.slice(line.lastIndexOf(' ') + 1));
}
