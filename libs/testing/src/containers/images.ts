import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseEnv } from 'node:util';

const IMAGES = join(__dirname, '..', '..', '..', '..', 'deploy', 'images');

/**
 * The image of a server: TOLLGATE_<NAME>_IMAGE of the environment. Without it, the image is the one in
 * deploy/images/official.env, or with TOLLGATE_IMAGES=local the one in local.env, which Jest's global set-up builds.
 */
export function imageOf(name: 'REDIS' | 'POSTGRES' | 'KAFKA'): string {
  const setting = `TOLLGATE_${name}_IMAGE`;
  const file = process.env['TOLLGATE_IMAGES'] === 'local' ? 'local.env' : 'official.env';
  const image = process.env[setting] ?? parseEnv(readFileSync(join(IMAGES, file), 'utf8'))[setting];
  if (!image) throw new Error(`${setting} is not in deploy/images/${file}`);
  return image;
}
