import { commonBounds, FEMTOS_PER_NANO, type PriceStamp } from '@tollgate/contracts';
import { type ConfigSource, logger, type ModelConfig, stampPrice, type TollgateConfig } from '@tollgate/runtime';
import { type Backend, compileBackend } from './backend';
import { type ModelRow, pricingOf } from './model-row';

export type { Backend } from './backend';

/**
 * `created` of every row of `GET /models`: 2026-01-01. The catalog has no such date, but clients want a stable number.
 */
const CATALOG_CREATED_SECONDS = 1_767_225_600;

export type Tokenizer = ModelConfig['tokenizer'];

/** Which models a key may use: `null` for all. */
export type AllowedModels = ReadonlySet<string> | null;

/** A model of `tollgate.yaml`, ready for the hot path: prices parsed, backends resolved. */
export interface CatalogModel {
  id: string;
  /** Its other names in requests. */
  aliases: readonly string[];
  kind: 'chat' | 'embedding';
  contextTokens: number;
  maxOutputTokens: number;
  /** Lowers a larger `max_tokens` to `maxOutputTokens`, instead of refusing it. */
  clamp: boolean;
  /** False: requests with tools, or with a JSON schema, are refused. */
  tools: boolean;
  jsonSchema: boolean;
  /** Which requests should go to the same backend: with the same beginning, of the same user, or none. */
  routing: 'load' | 'prefix' | 'user';
  tokenizer: Tokenizer;
  templateTokensPerMessage: number;
  templateTokens: number;
  /** The token ids of a prompt must be below it. Null: not known. */
  vocabularyTokens: number | null;
  /** The numbers of a vector. Null: not known. */
  dimensions: number | null;
  /** Null: the model accepts none. */
  maxTokensPerImage: number | null;
  maxTokensPerAudio: number | null;
  maxTokensPerVideo: number | null;
  maxTokensPerFile: number | null;
  /** What the dialects of all its backends take. */
  maxStopSequences: number;
  dottedNames: boolean;
  price: PriceStamp;
  /** The higher price of input and cached input: a hold uses it for each prompt token. */
  promptFemtosPerToken: bigint;
  outputFemtosPerToken: bigint;
  requestFemtos: bigint;
  backends: readonly Backend[];
  /** Ids of the models that answer if no backend of this one can. */
  fallback: readonly string[];
  /** For requests that find no place at any backend. */
  queue: { maxRequests: number; maxWaitMs: number };
  /** Undocumented fields that a request may have, by the dialects of all its backends. */
  passthrough: ReadonlySet<string>;
  /** Whether a backend may be asked to fetch media by `https:`. A list allows these domains and those below them. */
  mediaUrls: boolean | readonly string[];
  /** A reported token count is believed between `min` and `max` times our own count. */
  usageBand: { min: number; max: number };
  /** Its row, and one for each alias. */
  rows: readonly ModelRow[];
}

/**
 * The models in force, compiled once per accepted configuration. A running request keeps the model that it began with.
 */
export class Catalog {
  private compiledFrom: TollgateConfig;
  private models: ReadonlyMap<string, CatalogModel>;
  private byAlias: ReadonlyMap<string, CatalogModel>;

  /**
   * Throws when the initial configuration cannot be compiled. When a later one cannot, the old one stays in force.
   * @param simulatorUrl base URL (ends in /v1) that the backend url "simulator:" stands for
   */
  constructor(
    private readonly config: ConfigSource,
    private readonly simulatorUrl: string,
  ) {
    this.compiledFrom = config.current;
    this.models = this.compile(config.current);
    this.byAlias = aliasesOf(this.models);
  }

  /**
   * The model with this id or alias. Undefined when it does not exist or the key may not use it; the caller cannot tell
   * which.
   */
  find(name: string, allowed: AllowedModels): CatalogModel | undefined {
    const model = this.current().get(name) ?? this.byAlias.get(name);
    return model && (allowed === null || allowed.has(model.id)) ? model : undefined;
  }

  /** The row of `GET /models` with this id or alias, if the key may use its model. */
  row(name: string, allowed: AllowedModels): ModelRow | undefined {
    return this.find(name, allowed)?.rows.find(({ id }) => id === name);
  }

  /** The models that the key may use, in the order of `tollgate.yaml`. */
  all(allowed: AllowedModels): CatalogModel[] {
    return [...this.current().values()].filter(({ id }) => allowed === null || allowed.has(id));
  }

  /** The models that answer if no backend of this one can, as far as the key may use them. */
  fallbacksOf({ fallback }: CatalogModel, allowed: AllowedModels): CatalogModel[] {
    if (fallback.length === 0) return [];
    return fallback.flatMap((id) => this.current().get(id) ?? []).filter(({ id }) => !allowed || allowed.has(id));
  }

  /** The rows of `GET /models` for the same models. */
  list(allowed: AllowedModels): ModelRow[] {
    return this.all(allowed).flatMap(({ rows }) => rows);
  }

  /** Whether the key may use a free model. If so, a request of it may be served without credit. */
  hasFree(allowed: AllowedModels): boolean {
    for (const model of this.current().values())
      if (isFree(model) && (allowed === null || allowed.has(model.id))) return true;
    return false;
  }

  private current(): ReadonlyMap<string, CatalogModel> {
    const config = this.config.current;
    if (config === this.compiledFrom) return this.models;
    this.compiledFrom = config;
    try {
      this.models = this.compile(config);
      this.byAlias = aliasesOf(this.models);
    } catch (error) {
      // The check of the file should have found it. Its failure must not affect requests.
      logger('gateway').error(
        { err: error },
        'the models cannot be used: those of the old configuration stay in force',
      );
    }
    return this.models;
  }

  private compile({ models, currency }: TollgateConfig): ReadonlyMap<string, CatalogModel> {
    return new Map(models.map((model) => [model.id, compileModel(model, currency, this.simulatorUrl)]));
  }
}

function aliasesOf(models: ReadonlyMap<string, CatalogModel>): ReadonlyMap<string, CatalogModel> {
  return new Map([...models.values()].flatMap((model) => model.aliases.map((alias) => [alias, model])));
}

function isFree({ promptFemtosPerToken, outputFemtosPerToken, requestFemtos }: CatalogModel): boolean {
  return promptFemtosPerToken === 0n && outputFemtosPerToken === 0n && requestFemtos === 0n;
}

function compileModel(model: ModelConfig, currency: string, simulatorUrl: string): CatalogModel {
  const price = stampPrice(model.price, model.kind);
  const pricing = pricingOf(price, currency);
  const input = BigInt(price.inputFemtos);
  const cached = BigInt(price.cachedInputFemtos);
  const backends = model.backends.map((backend) => compileBackend(backend, model, simulatorUrl));
  const bounds = commonBounds(backends.map(({ dialect }) => dialect));
  return {
    id: model.id,
    aliases: model.aliases,
    kind: model.kind,
    contextTokens: model.contextTokens,
    maxOutputTokens: Math.min(model.maxOutputTokens ?? model.contextTokens, model.contextTokens),
    clamp: model.clamp,
    tools: model.tools,
    jsonSchema: model.jsonSchema,
    routing: model.routing,
    tokenizer: model.tokenizer,
    templateTokensPerMessage: model.templateTokensPerMessage,
    templateTokens: model.templateTokens,
    vocabularyTokens: model.vocabularyTokens ?? null,
    dimensions: model.dimensions ?? null,
    maxTokensPerImage: model.maxTokensPerImage ?? null,
    maxTokensPerAudio: model.maxTokensPerAudio ?? null,
    maxTokensPerVideo: bounds.video ? (model.maxTokensPerVideo ?? null) : null,
    maxTokensPerFile: bounds.file ? (model.maxTokensPerFile ?? null) : null,
    maxStopSequences: bounds.stopSequences,
    dottedNames: bounds.dottedNames,
    price,
    promptFemtosPerToken: input > cached ? input : cached,
    outputFemtosPerToken: BigInt(price.outputFemtos),
    requestFemtos: BigInt(price.requestNanos) * FEMTOS_PER_NANO,
    backends,
    fallback: model.fallback,
    queue: model.queue,
    passthrough: new Set(backends.flatMap(({ passthrough }) => [...passthrough])),
    mediaUrls: model.mediaUrls,
    usageBand: model.usageBand,
    rows: [model.id, ...model.aliases].map((id) => ({
      id,
      object: 'model',
      created: CATALOG_CREATED_SECONDS,
      owned_by: model.ownedBy,
      context_length: model.contextTokens,
      max_model_len: model.contextTokens,
      pricing,
    })),
  };
}
