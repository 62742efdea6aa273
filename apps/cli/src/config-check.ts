import { ConfigError, readConfigFile, type TollgateConfig } from '@tollgate/runtime';
import { Failure } from './failure';
import type { Output } from './output';
import { counted } from './table';

/**
 * Reads and validates a configuration file without a server. False if it has problems; each is printed with its path.
 * `allowMissing`: secrets that it names need not be here.
 */
export function checkConfig(file: string, env: NodeJS.ProcessEnv, output: Output, allowMissing: boolean): boolean {
  const missing: string[] = [];
  try {
    const config = readConfigFile(file, env, allowMissing ? (reference) => missing.push(reference) : undefined);
    const { models, plans, currency } = config;
    const notes = [...derived(config), ...missing.map((reference) => `${reference} is not here, and was not checked`)];
    const named = {
      ...{ ok: true, file, currency, models: models.map(({ id }) => id), plans: plans.map(({ id }) => id) },
      ...{ problems: [], notes },
    };
    const sum = `Models: ${models.length}, plans: ${plans.length}, prices in ${currency}.`;
    output.answer(named, [`${file} is valid. ${sum}`, ...notes.map((note) => `- ${note}.`)].join('\n'));
    return true;
  } catch (error) {
    if (!(error instanceof ConfigError))
      throw new Failure(`${file} cannot be checked: ${(error as Error).message}`, 'config_unreadable');
    output.failure({ ok: false, file, problems: error.problems, notes: [] }, error.message);
    if (!output.json && !allowMissing && error.problems.some(({ path }) => path.endsWith('.apiKey')))
      output.note('To check the file where its secrets are not: --allow-missing-env.');
    return false;
  }
}

/** What the file does not say, and Tollgate derives from what it says. */
function derived({ models }: TollgateConfig): string[] {
  const open = models.filter(({ kind, maxOutputTokens }) => kind === 'chat' && maxOutputTokens === undefined);
  return open.map(
    ({ id, contextTokens }) =>
      `${id} has no maxOutputTokens: an answer may have as many tokens as its context, ` +
      `${counted(contextTokens, 'token')}`,
  );
}
