import type { BackendDialect, PriceStamp } from '@tollgate/contracts';
import { DEFAULT_PASSTHROUGH, FEMTOS_PER_NANO } from '@tollgate/contracts';
import { backendName, logger, stampPrice } from '@tollgate/runtime';
import type { BackendConfig, ConfigSource, ModelConfig, TollgateConfig } from '@tollgate/runtime';

/**
 * `created` of every row of `GET /models`: 2026-01-01. The catalog has no such date, but clients want a stable number.
 */
const CATALOG_CREATED_SECONDS = 1_767_225_600;

export type Tokenizer = ModelConfig['tokenizer'];

/** Which models a key may use: `null` for all. */
export type AllowedModels = ReadonlySet<string> | null;

/** One address of a model. */
export interface Backend {
  /** Its name in usage events: without secrets, and the same after a restart. */
  name: string;
  /** `scheme://host:port`; the key of its connections. */
  origin: string;
  /** Path before `/chat/completions`, e.g. `/v1`. */
  basePath: string;
  /** The model's name at this backend. */
  model: string;
  /** Value of the `authorization` header, or null. Never logged. */
  authorization: string | null;
  weight: number;
  dialect: BackendDialect;
  /** Undocumented fields that are sent to it when a request has them. */
  passthrough: ReadonlySet<string>;
}

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
  tokenizer: Tokenizer;
  templateTokensPerMessage: number;
  templateTokens: number;
  /** Null: the model accepts none. */
  maxTokensPerImage: number | null;
  maxTokensPerAudio: number | null;
  price: PriceStamp;
  /** The higher price of input and cached input: a hold uses it for each prompt token. */
  promptFemtosPerToken: bigint;
  outputFemtosPerToken: bigint;
  requestFemtos: bigint;
  backends: readonly Backend[];
  /** Undocumented fields that a request may have: those of all its backends. */
  passthrough: ReadonlySet<string>;
  /** Whether a backend may be asked to fetch media by `https:`. A list allows these domains and those below them. */
  mediaUrls: boolean | readonly string[];
  /** A reported token count is believed between `min` and `max` times our own count. */
  usageBand: { min: number; max: number };
  /** Its row, and one for each alias. */
  rows: readonly ModelRow[];
}

/** A row of `GET /models`. */
export interface ModelRow {
  id: string;
  object: 'model';
  created: number;
  owned_by: string;
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

  private compile({ models }: TollgateConfig): ReadonlyMap<string, CatalogModel> {
    return new Map(models.map((model) => [model.id, compileModel(model, this.simulatorUrl)]));
  }
}

function aliasesOf(models: ReadonlyMap<string, CatalogModel>): ReadonlyMap<string, CatalogModel> {
  return new Map([...models.values()].flatMap((model) => model.aliases.map((alias) => [alias, model])));
}

function isFree({ promptFemtosPerToken, outputFemtosPerToken, requestFemtos }: CatalogModel): boolean {
  return promptFemtosPerToken === 0n && outputFemtosPerToken === 0n && requestFemtos === 0n;
}

function compileModel(model: ModelConfig, simulatorUrl: string): CatalogModel {
  const price = stampPrice(model.price, model.kind);
  const input = BigInt(price.inputFemtos);
  const cached = BigInt(price.cachedInputFemtos);
  const backends = model.backends.map((backend) => compileBackend(backend, model, simulatorUrl));
  return {
    id: model.id,
    aliases: model.aliases,
    kind: model.kind,
    contextTokens: model.contextTokens,
    maxOutputTokens: Math.min(model.maxOutputTokens ?? model.contextTokens, model.contextTokens),
    clamp: model.clamp,
    tokenizer: model.tokenizer,
    templateTokensPerMessage: model.templateTokensPerMessage,
    templateTokens: model.templateTokens,
    maxTokensPerImage: model.maxTokensPerImage ?? null,
    maxTokensPerAudio: model.maxTokensPerAudio ?? null,
    price,
    promptFemtosPerToken: input > cached ? input : cached,
    outputFemtosPerToken: BigInt(price.outputFemtos),
    requestFemtos: BigInt(price.requestNanos) * FEMTOS_PER_NANO,
    backends,
    passthrough: new Set(backends.flatMap(({ passthrough }) => [...passthrough])),
    mediaUrls: model.mediaUrls,
    usageBand: model.usageBand,
    rows: [model.id, ...model.aliases].map((id) => ({
      id,
      object: 'model',
      created: CATALOG_CREATED_SECONDS,
      owned_by: model.ownedBy,
    })),
  };
}

/** OpenAI accepts only one name of the output limit, and refuses a body that all other engines accept. */
function dialectOf({ hostname }: URL): BackendDialect {
  return hostname === 'api.openai.com' || hostname.endsWith('.openai.azure.com') ? 'openai' : 'any';
}

function compileBackend(backend: BackendConfig, { id, passthrough }: ModelConfig, simulatorUrl: string): Backend {
  const url = new URL(backend.url === 'simulator:' ? simulatorUrl : backend.url);
  const dialect = backend.url === 'simulator:' ? 'simulator' : (backend.dialect ?? dialectOf(url));
  return {
    name: backendName(backend),
    origin: url.origin,
    basePath: url.pathname.replace(/\/+$/, ''),
    model: backend.model ?? id,
    authorization: backend.apiKey === undefined ? null : `Bearer ${backend.apiKey}`,
    weight: backend.weight,
    dialect,
    passthrough: new Set(passthrough ?? DEFAULT_PASSTHROUGH[dialect]),
  };
}
