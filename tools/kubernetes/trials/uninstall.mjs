// What an uninstall leaves.
import { SetupError } from '../../setup/prepare.mjs';
import { helm, kubectl } from '../cluster.mjs';
import { secondsSince } from './release.mjs';

const TIMEOUT = '10m';
/** The volumes of `devStores`. The Secrets are not of the release. */
const STAYS = ['persistentvolumeclaims'];

/** An uninstall leaves the volumes of the stores, and nothing else. */
export async function leavesNothing({ namespace, release }) {
  const startedMs = Date.now();
  await helm(['-n', namespace, 'uninstall', release, '--wait', '--timeout', TIMEOUT]);
  const seconds = secondsSince(startedMs);
  const left = await objectsOf(namespace, release);
  const unexpected = left.filter((name) => !STAYS.includes(name.split('/')[0].split('.')[0]));
  if (unexpected.length > 0) throw new SetupError(`The uninstall left ${unexpected.join(' ')}.`);
  return { seconds, left };
}

/** All objects with the release's label, by kind and name. */
async function objectsOf(namespace, release) {
  const selector = ['-l', `app.kubernetes.io/instance=${release}`, '--ignore-not-found'];
  const resources = async (namespaced) =>
    (await kubectl(['api-resources', '--verbs=list,delete', `--namespaced=${namespaced}`, '-o', 'name']))
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
