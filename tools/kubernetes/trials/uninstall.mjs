// What an uninstall leaves.
import { SetupError } from '../../setup/prepare.mjs';
import { helm, kubectl } from '../cluster.mjs';
import { secondsSince, until } from './release.mjs';

const TIMEOUT = '10m';
const KINDS_TIMEOUT_MS = 60_000;
/** Helm does not wait for pods. The gateway's pods let their streams end. */
const PODS_TIMEOUT_MS = 600_000;
/** The volumes of `devStores`, and what `helm test` made. The Secrets are not of the release. */
const stays = (release) => [
  `configmaps/${release}-test`,
  `pods/${release}-test`,
  ...['postgres', 'redis', 'kafka'].map((store) => `persistentvolumeclaims/data-${release}-${store}-0`),
];

/** An uninstall leaves what the operating guide says, and nothing else. */
export async function leavesNothing({ namespace, release }) {
  const startedMs = Date.now();
  await helm(['-n', namespace, 'uninstall', release, '--wait', '--timeout', TIMEOUT]);
  const selector = ['-l', `app.kubernetes.io/instance=${release}`, '-o', 'name'];
  await until('The end of all pods', PODS_TIMEOUT_MS, async () => {
    const names = (await kubectl(['-n', namespace, 'get', 'pods', ...selector])).split('\n').filter(Boolean);
    return names.every((name) => name === `pod/${release}-test`);
  });
  const seconds = secondsSince(startedMs);
  const left = await objectsOf(namespace, release);
  const unexpected = left.filter((name) => !stays(release).includes(name));
  if (unexpected.length > 0) throw new SetupError(`The uninstall left ${unexpected.join(' ')}.`);
  return { seconds, left };
}

/** Fails while a server of metrics is down, so it is repeated for a while. */
async function resourceNames(namespaced) {
  let names;
  await until('A list of all kinds', KINDS_TIMEOUT_MS, async () => {
    const args = ['api-resources', '--verbs=list,delete', `--namespaced=${namespaced}`, '-o', 'name'];
    names = await kubectl(args).catch(() => undefined);
    return names !== undefined;
  });
  return names;
}

/** All objects with the release's label, by kind and name. */
async function objectsOf(namespace, release) {
  const selector = ['-l', `app.kubernetes.io/instance=${release}`, '--ignore-not-found'];
  const resources = async (namespaced) =>
    (await resourceNames(namespaced))
      .split('\n')
      // These come and go with pods and services.
      .filter((name) => name !== '' && !/^(events|endpoints|endpointslices|pods\.metrics|nodes\.metrics)/.test(name));
  const found = [];
  for (const namespaced of [true, false])
    for (const resource of await resources(namespaced)) {
      const args = [...(namespaced ? ['-n', namespace] : []), 'get', resource, ...selector, '-o', 'name'];
      found.push(
        ...(await kubectl(args))
          .split('\n')
          .filter(Boolean)
          .map((name) => `${resource}/${name.split('/').at(-1)}`),
      );
    }
  return found;
}
