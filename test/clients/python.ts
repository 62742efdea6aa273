import { join } from 'node:path';

const INSTALLED = join(__dirname, '../../.python');

/** The interpreter with the packages of tools/python/`set`.txt, which tools/python/install.sh installs. */
export function python(set: 'tools' | 'litellm'): string {
  return join(INSTALLED, set, 'bin/python');
}

/** Compiled modules are not written beside the sources. */
export const pythonEnv = { PYTHONPYCACHEPREFIX: join(INSTALLED, 'compiled') };

export const schemathesis = join(INSTALLED, 'tools', 'bin/schemathesis');
