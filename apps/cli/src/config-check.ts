import { Failure } from './failure';
import type { Output } from './output';

/** Reads and checks a configuration file without a server. False: it has problems, each printed with its path. */
export async function checkConfig(file: string, env: NodeJS.ProcessEnv, output: Output): Promise<boolean> {
  // Loaded here alone: the other commands need none of it.
  const { ConfigError, readConfigFile } = await import('@tollgate/runtime');
  try {
    const { models, plans, currency } = readConfigFile(file, env);
    output.answer(
      { ok: true, file, currency, models: models.map(({ id }) => id), plans: plans.map(({ id }) => id), problems: [] },
      `${file} is valid: ${models.length} models, ${plans.length} plans, prices in ${currency}.`,
    );
    return true;
  } catch (error) {
    if (!(error instanceof ConfigError))
      throw new Failure(`${file} cannot be checked: ${(error as Error).message}`, 'config_unreadable');
    output.answer({ ok: false, file, problems: error.problems }, error.message);
    return false;
  }
}
