import { ConfigError, readConfigFile } from '@tollgate/runtime';
import { Failure } from './failure';
import type { Output } from './output';

/**
 * Reads and validates a configuration file without a server. False if it has problems; each is printed with its path.
 */
export function checkConfig(file: string, env: NodeJS.ProcessEnv, output: Output): boolean {
  try {
    const { models, plans, currency } = readConfigFile(file, env);
    output.answer(
      { ok: true, file, currency, models: models.map(({ id }) => id), plans: plans.map(({ id }) => id), problems: [] },
      `${file} is valid. Models: ${models.length}, plans: ${plans.length}, prices in ${currency}.`,
    );
    return true;
  } catch (error) {
    if (!(error instanceof ConfigError))
      throw new Failure(`${file} cannot be checked: ${(error as Error).message}`, 'config_unreadable');
    output.failure({ ok: false, file, problems: error.problems }, error.message);
    return false;
  }
}
