import { ConfigError, readConfigFile, type TollgateConfig } from '@tollgate/runtime';
import { Failure, UsageFailure } from '../command/failure';
import { findOperator, OperatorClient } from '../command/operator-client';
import type { Output } from '../command/output';
import { counted } from '../command/table';

const ASK_TIMEOUT_MS = 5_000;
const NONE_FOUND =
  'no running Tollgate was asked: none was found (set TOLLGATE_DATA_DIR, or TOLLGATE_OPERATOR_URL and its secret)';

export interface CheckOptions {
  /** The file was not named: it is the file of TOLLGATE_CONFIG, or the default one. */
  isDefault?: boolean;
  allowMissingEnv?: boolean;
  /** False: no running Tollgate is asked. */
  server?: boolean;
}

/**
 * Reads and validates a configuration file, and asks a running Tollgate, where one is found, whether it would accept
 * it. False if it has problems; each is printed with its path. `allowMissingEnv`: secrets that it names need not be
 * here.
 */
export async function checkConfig(
  file: string,
  env: NodeJS.ProcessEnv,
  output: Output,
  { isDefault = false, allowMissingEnv: allowMissing = false, server = true }: CheckOptions,
): Promise<boolean> {
  const missing: string[] = [];
  try {
    const onMissing = allowMissing ? (reference: string) => missing.push(reference) : undefined;
    const config = readConfigFile(file, env, { onMissing });
    const { models, plans, currency } = config;
    const asked = server ? await askServer(config, env) : NOT_ASKED;
    if (asked.problems.length > 0)
      throw new ConfigError(
        file,
        asked.problems.map((message) => ({ path: '', message: `the running Tollgate would refuse it: ${message}` })),
      );
    const accepts = asked.url === null ? [] : [`the running Tollgate at ${asked.url} would accept it`];
    const notes = [
      ...accepts,
      ...derived(config),
      ...[...new Set(missing)].map((reference) => `${reference} is not here, and was not checked`),
      ...asked.notes,
    ];
    const named = {
      ...{ ok: true, file, currency, models: models.map(({ id }) => id), plans: plans.map(({ id }) => id) },
      ...{ problems: [], notes, asked: asked.url !== null },
    };
    const sum = `Models: ${models.length}, plans: ${plans.length}, prices in ${currency}.`;
    output.answer(named, [`${file} is valid. ${sum}`, ...notes.map((note) => `- ${note}.`)].join('\n'));
    return true;
  } catch (error) {
    // The file is read by then, and the settings for asking a server are wrong.
    if (error instanceof UsageFailure) throw error;
    if (!(error instanceof ConfigError))
      throw new Failure(`${file} cannot be checked: ${(error as Error).message}`, 'config_unreadable');
    output.failure({ ok: false, file, problems: error.problems, notes: [] }, error.message);
    if (!output.json && isDefault && error.unreadable) output.note('Name the file, or set TOLLGATE_CONFIG to it.');
    if (!output.json && !allowMissing && lacksSecrets(file, env))
      output.note('To check the file where its secrets are not: --allow-missing-env.');
    return false;
  }
}

/** Whether the file names secrets that are not here, in any of its fields. */
function lacksSecrets(file: string, env: NodeJS.ProcessEnv): boolean {
  let lacks = false;
  try {
    readConfigFile(file, env, { onMissing: () => (lacks = true) });
  } catch (error) {
    // Its problems have been shown.
    if (!(error instanceof ConfigError)) throw error;
  }
  return lacks;
}

interface ServerFindings {
  /** The address of the Tollgate that answered. Null: none was asked, or none answered. */
  url: string | null;
  problems: string[];
  notes: string[];
}
const NOT_ASKED: ServerFindings = { url: null, problems: [], notes: [] };

/** What a running Tollgate says. One that cannot be asked is no problem of the file. */
async function askServer({ currency, plans }: TollgateConfig, env: NodeJS.ProcessEnv): Promise<ServerFindings> {
  let operator;
  try {
    operator = findOperator(env);
  } catch (error) {
    if (error instanceof Failure && error.code === 'not_running') return { ...NOT_ASKED, notes: [NONE_FOUND] };
    throw error;
  }
  try {
    const wanted = plans.map(({ id, profiles }) => ({ id, profiles: profiles.map((profile) => ({ id: profile.id })) }));
    const { data } = await new OperatorClient(operator).post<{ data: { problems: string[] } }>(
      '/config/check',
      { currency, plans: wanted },
      ASK_TIMEOUT_MS,
    );
    return { url: operator.url, problems: data.problems, notes: [] };
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    const why = error.code === 'unreachable' ? `nothing answers at ${operator.url}` : error.message.replace(/\.$/, '');
    return { ...NOT_ASKED, notes: [`no running Tollgate was asked: ${why} (--no-server asks none)`] };
  }
}

/** The names that a note lists. */
const MAX_LISTED = 5;

/** What the file does not say, and Tollgate derives from what it says. */
function derived({ models }: TollgateConfig): string[] {
  const open = models.filter(({ kind, maxOutputTokens }) => kind === 'chat' && maxOutputTokens === undefined);
  if (open.length === 0) return [];
  const names = open.slice(0, MAX_LISTED).map(({ id, contextTokens }) => `${id} (${counted(contextTokens, 'token')})`);
  const more = open.length > MAX_LISTED ? [`${open.length - MAX_LISTED} more`] : [];
  return [
    `without maxOutputTokens an answer may fill the whole context, and a request holds credit for that much: ` +
      [...names, ...more].join(', '),
  ];
}
