import { delimiter, join } from 'node:path';
import type { Clocks } from './clocks';

const ROOT = join(__dirname, '../../..');
const FILES = ['docker-compose.yml', 'test/e2e/composed.yml', 'test/faults/clocks.yml'];

/** The environment for `ComposedDeployment`, with clocks that can be set and short stop times. */
export function nemesisEnvironment(clocks: Clocks): Record<string, string> {
  return {
    COMPOSE_FILE: FILES.map((file) => join(ROOT, file)).join(delimiter),
    TOLLGATE_TEST_CLOCKS: clocks.directory,
    TOLLGATE_DRAIN_SECONDS: '10',
    TOLLGATE_LAME_DUCK_SECONDS: '5',
  };
}
