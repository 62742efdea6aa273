import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { StartError } from '../process/start-error';

/** The checkout, from dist/workers of this library. */
const ROOT = join(__dirname, '..', '..', '..', '..');

/** A hash of the compiled code of all apps and libs, as it is on the disk now. */
export function buildId(root = ROOT): string {
  const hash = createHash('sha256');
  for (const kind of ['apps', 'libs'])
    for (const project of readdirSync(join(root, kind)).sort()) {
      const dist = join(root, kind, project, 'dist');
      for (const name of scriptsIn(dist))
        hash.update(`${kind}/${project}/${name}\n`).update(readFileSync(join(dist, name)));
    }
  return hash.digest('hex');
}

/**
 * Rejects a worker whose code differs from the code of the primary process. A new version may ask and store other
 * things.
 */
export function requireSameBuild(ofPrimary: string, own: string): void {
  if (own !== ofPrimary)
    throw new StartError('The code was built again after the first process started: restart Tollgate.');
}

function scriptsIn(dist: string): string[] {
  try {
    return readdirSync(dist, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.js'))
      .sort();
  } catch (error) {
    // A folder that is not a project.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}
