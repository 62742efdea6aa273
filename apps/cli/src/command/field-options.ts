/** The options of fields of the operator API. */
const OPTIONS: Readonly<Record<string, string>> = {
  ...{ keyId: '--key', tenantId: '--tenant', from: '--from', to: '--to', model: '--model', groupBy: '--group-by' },
  ...{ profile: '--profile', expiresAt: '--expires-at', owner: '--owner', tags: '--tags', models: '--models' },
  ...{ externalId: '--external-id', source: '--source', ref: '--ref', reason: '--reason', provider: '--provider' },
};

/** Such as `externalId`: no English word. */
const CAMEL_CASE = /\b[a-z]+[A-Z]\w*/g;

/**
 * Words of messages with fields whose names are English words, so that only the whole phrase tells them apart. A test
 * compares each with the messages of the services.
 */
export const PHRASES: readonly [RegExp, string][] = [
  [/ must (be before|not be after) to\./, ' must $1 --to.'],
  [/ and to must be full hours/, ' and --to must be full hours'],
  [/The default of from is/, 'The default of --from is'],
  [/The default of to is/, 'The default of --to is'],
  [/Name another one for each in profiles\./, 'Name another one for each with --profile <from>=<to>.'],
];

/** A field of a key in a file: the file has the names of the API. */
const IN_FILE = /^"?keys\.\d/;

/**
 * A message of the operator API for the command line: it names fields by the options that they came from. Those are
 * the first word, words in camel case, and PHRASES.
 */
export function inOptions(message: string): string {
  if (IN_FILE.test(message)) return message;
  const named = message.replace(/^\w+/, optionOf).replace(CAMEL_CASE, optionOf);
  return PHRASES.reduce((text, [words, option]) => text.replace(words, option), named);
}

function optionOf(field: string): string {
  return Object.hasOwn(OPTIONS, field) ? OPTIONS[field]! : field;
}
