import { DIALECT_BOUNDS, validatePassedThrough } from '@tollgate/contracts';
import type { BackendConfig } from './backend-config';
import { problemsOfTls } from './check-tls';
import type { Path, Problem } from './config-secrets';
import type { ModelConfig, TollgateConfig } from './tollgate-config';

/** The fields of a model for parts that only some dialects take. */
const MEDIA_BY_DIALECT = [
  ['maxTokensPerVideo', 'video'],
  ['maxTokensPerFile', 'file'],
] as const;

/** A hold covers the prompt of each fallback only if all count it alike. Vectors of different models do not mix. */
const COUNTED_ALIKE = [
  'tokenizer',
  'templateTokensPerMessage',
  'templateTokens',
  'maxTokensPerImage',
  'maxTokensPerAudio',
  'maxTokensPerVideo',
  'maxTokensPerFile',
] as const;

/** Finds fields that are valid by themselves, but not beside the others. */
export function crossChecks({ models, plans }: TollgateConfig): Problem[] {
  const names = new Map(models.map(({ id }) => [id, id]));
  const ids = new Set(names.keys());
  const lacks = (id: string) => (id === '*' || ids.has(id) ? null : `there is no model "${id}"`);
  return [
    ...models.flatMap((model, m) => below(['models', m], modelProblems(model, models, names))),
    ...plans.flatMap(({ profiles }, p) =>
      profiles.flatMap((profile, q) => below(['plans', p, 'profiles', q], each('models', profile.models, lacks))),
    ),
  ];
}

/** @param names the model that has each id or alias so far; gets this model's aliases */
function modelProblems(model: ModelConfig, models: readonly ModelConfig[], names: Map<string, string>): Problem[] {
  const { id, kind, maxOutputTokens = 0, contextTokens, aliases, backends, fallback } = model;
  const taken = (alias: string) => {
    const owner = names.get(alias);
    names.set(alias, id);
    return owner === undefined ? null : `"${alias}" is already a name of "${owner}"`;
  };
  const isTooLong = kind === 'chat' && maxOutputTokens > contextTokens;
  return [
    ...each('aliases', aliases, taken),
    ...(isTooLong ? [{ path: ['maxOutputTokens'], message: 'must not be more than contextTokens' }] : []),
    ...backends.flatMap((backend, b) => backendProblems(model, backend, b)),
    ...each('fallback', fallback, (other) => validateFallback(model, other, models)),
    ...each('passthrough', model.passthrough ?? [], validatePassedThrough),
  ];
}

function backendProblems(model: ModelConfig, backend: BackendConfig, b: number): Problem[] {
  const { url, tls, dialect = 'any' } = backend;
  const problems: Problem[] = MEDIA_BY_DIALECT.filter(
    ([field, kind]) => model[field] !== undefined && !DIALECT_BOUNDS[dialect][kind],
  ).map(([field]) => ({ path: [field], message: `backends[${b}] is of a dialect without it: ${dialect}` }));
  if (!tls) return problems;
  const path: Path = ['backends', b, 'tls'];
  if (!url.startsWith('https:')) problems.push({ path, message: 'is only for a URL with https:' });
  for (const { field, message } of problemsOfTls(tls))
    problems.push({ path: field ? [...path, field] : path, message });
  return problems;
}

function validateFallback(model: ModelConfig, id: string, models: readonly ModelConfig[]): string | null {
  const other = models.find((one) => one.id === id);
  if (!other) return `there is no model "${id}"`;
  if (other === model) return 'must be another model';
  if (model.kind !== 'chat' || other.kind !== 'chat') return 'is only for chat models';
  const differing = COUNTED_ALIKE.find((field) => other[field] !== model[field]);
  return differing === undefined ? null : `"${id}" must have the same ${differing}`;
}

/** The problems of the items of a list. */
function each(field: string, items: readonly string[], validate: (item: string) => string | null): Problem[] {
  return items.flatMap((item, index) => {
    const message = validate(item);
    return message === null ? [] : [{ path: [field, index], message }];
  });
}

const below = (above: Path, problems: readonly Problem[]): Problem[] =>
  problems.map(({ path, message }) => ({ path: [...above, ...path], message }));
