import 'reflect-metadata';
import { IsOptional } from 'class-validator';
import { BackendConfig } from './backend-config';
import {
  matching,
  MayBeAbsent,
  MustBeFlag,
  MustBeListOf,
  MustBeNumber,
  MustBeOneOf,
  MustBeSection,
  MustBeSections,
  MustBeText,
  MustBeWhole,
  MustMatch,
} from './config-rules';
import { IsAscendingPercents } from './is-ascending-percents';
import { IsMediaUrls } from './is-media-urls';
import { IsPrice } from './is-price';

const MODEL_ID = /^[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}$/;
const MODEL_NAME = 'a name of letters, digits and . _ : / - that starts with a letter or digit';
const PLAIN_ID = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/;
const PLAIN_NAME = 'a name of at most 64 letters, digits, _ and - that starts with a letter or digit';
const FIELD_NAME = /^[a-z][a-z0-9_]{0,63}$/;
const NAMES = { all: 'names', each: MODEL_NAME };
const FIELDS = { all: 'names of fields', each: 'the name of a field: lower-case letters, digits and _' };
const IDS = { all: 'ids of models', each: 'the id of a model' };
const LIMITS = 'a mapping with requestsPerMinute, tokensPerMinute and concurrency';
const isText = (value: unknown) => typeof value === 'string';

/** Each may cost one more run of a request. */
const MAX_FALLBACKS = 3;

/** Prices per million tokens, `request` per request; decimal strings, "0" for free. */
export class PriceConfig {
  @IsPrice() input!: string;
  @MayBeAbsent() @IsPrice() cachedInput?: string;
  @IsPrice() output!: string;
  @IsPrice() request: string = '0';
}

/** What happens to requests while all good backends of the model are at `maxConcurrency`. In each process. */
export class QueueConfig {
  /** They wait for a place. More get 503. */
  @MustBeWhole(0, 100_000) maxRequests: number = 100;
  @MustBeWhole(1, 600_000) maxWaitMs: number = 10_000;
}

/**
 * The accepted range of a backend's token counts, as factors of the gateway's own count. Outside it the gateway's count
 * is charged.
 */
export class UsageBandConfig {
  @MustBeNumber(0, 1) min: number = 0.5;
  @MustBeNumber(1, 1_000) max: number = 2;
}

export class ModelConfig {
  @MustMatch(MODEL_ID, MODEL_NAME) id!: string;
  /** Other names that a request may use for it. The answer has the name that was used. */
  @MustBeListOf(NAMES, matching(MODEL_ID)) aliases: string[] = [];
  @MustBeOneOf('chat', 'embedding') kind!: 'chat' | 'embedding';
  @MustBeText(64) ownedBy: string = 'tollgate';
  @MustBeWhole(1, 100_000_000) contextTokens!: number;
  /** For chat: the largest `max_tokens`. Absent: the whole context. Ignored for embeddings. */
  @MayBeAbsent() @MustBeWhole(1, 100_000_000) maxOutputTokens?: number;
  /** A larger `max_tokens` is lowered to `maxOutputTokens`. Otherwise it is refused. */
  @MustBeFlag() clamp: boolean = false;
  /** False: the model cannot use tools, or keep to a JSON schema. Requests that ask for it are refused. */
  @MustBeFlag() tools: boolean = true;
  @MustBeFlag() jsonSchema: boolean = true;
  /** `prefix`, `user`: requests with the same beginning, or of the same `user`, go to the same backend. */
  @MustBeOneOf('load', 'prefix', 'user') routing: 'load' | 'prefix' | 'user' = 'load';
  @MustBeOneOf('o200k_base', 'cl100k_base', 'p50k_base', 'r50k_base') tokenizer:
    'o200k_base' | 'cl100k_base' | 'p50k_base' | 'r50k_base' = 'o200k_base';
  /**
   * Tokens that the model's chat template adds to each message, and once to all of them (including a default system
   * prompt). The defaults are OpenAI's. ChatML: 5 and 3.
   */
  @MustBeWhole(0, 1_000) templateTokensPerMessage: number = 3;
  @MustBeWhole(0, 100_000) templateTokens: number = 3;
  /**
   * The number of token ids that the model has: a prompt of token ids must not have this one or a higher one. Absent:
   * only the engine checks them.
   */
  @MayBeAbsent() @MustBeWhole(1, 2 ** 31) vocabularyTokens?: number;
  /**
   * For embeddings: the numbers of a vector, if a request does not name its `dimensions`. With it, a request is refused
   * if its answer would be too large. Absent: such an answer fails when it comes.
   */
  @MayBeAbsent() @MustBeWhole(1, 10_000_000) dimensions?: number;
  /** The maximum tokens of a part of each kind. Without it such parts are refused. */
  @MayBeAbsent() @MustBeWhole(1, 10_000_000) maxTokensPerImage?: number;
  @MayBeAbsent() @MustBeWhole(1, 10_000_000) maxTokensPerAudio?: number;
  @MayBeAbsent() @MustBeWhole(1, 10_000_000) maxTokensPerVideo?: number;
  @MayBeAbsent() @MustBeWhole(1, 10_000_000) maxTokensPerFile?: number;
  /** Undocumented fields that may reach a backend. Absent: the harmless sampling fields of each backend's dialect. */
  @MayBeAbsent() @MustBeListOf(FIELDS, matching(FIELD_NAME)) passthrough?: string[];
  /**
   * Media by `https:` URL, which the backend fetches: false, true, or the domains. `data:` URLs are always accepted.
   */
  @IsMediaUrls() mediaUrls: boolean | string[] = false;
  @MustBeSection(UsageBandConfig) usageBand: UsageBandConfig = new UsageBandConfig();
  @MustBeSection(PriceConfig, 'a mapping with input and output') price!: PriceConfig;
  @MustBeSection(QueueConfig) queue: QueueConfig = new QueueConfig();
  /** Ids of models that answer, in this order, when no backend of this one can. They have the price of what serves. */
  @MustBeListOf(IDS, isText, { max: MAX_FALLBACKS }) fallback: string[] = [];
  @MustBeSections(BackendConfig, 'backend') backends!: BackendConfig[];
}

export class LimitsConfig {
  @MustBeWhole(1, 100_000_000) requestsPerMinute!: number;
  @MustBeWhole(1, 1_000_000_000_000) tokensPerMinute!: number;
  @MustBeWhole(1, 1_000_000) concurrency!: number;
}

export class ProfileConfig {
  @MustMatch(PLAIN_ID, PLAIN_NAME) id!: string;
  /** Public model ids, or "*" for all. */
  @MustBeListOf({ ...IDS, all: 'ids of models, or ["*"]' }, isText, { repeats: true }) models: string[] = ['*'];
  @MustBeSection(LimitsConfig, LIMITS) limits!: LimitsConfig;
  /** The budget of each key with this profile, unless the operator set one for the key. Null: none. */
  @IsOptional() @MustBeWhole(0, Number.MAX_SAFE_INTEGER) monthlyBudgetCents: number | null = null;
  /** False: the header Idempotency-Key is ignored, and no answer is kept for repeats. Absent: as the plan says. */
  @MayBeAbsent() @MustBeFlag() idempotency?: boolean;
  /** True: `usage` of answers has the cost of the request, in `cost`. */
  @MayBeAbsent() @MustBeFlag() usageCost?: boolean;
}

export class PlanConfig {
  @MustMatch(PLAIN_ID, PLAIN_NAME) id!: string;
  @MustBeSection(LimitsConfig, LIMITS) limits!: LimitsConfig;
  /** The budget of each tenant with this plan, over all its keys, unless the operator set one. Null: none. */
  @IsOptional() @MustBeWhole(0, Number.MAX_SAFE_INTEGER) monthlyBudgetCents: number | null = null;
  /** False: the header Idempotency-Key is ignored, and no answer is kept, unless the profile says otherwise. */
  @MayBeAbsent() @MustBeFlag() idempotency?: boolean;
  /** Keys without a profile get the first one. */
  @MustBeSections(ProfileConfig, 'profile') profiles!: ProfileConfig[];
}

export class BudgetsConfig {
  /** Percentages of a monthly budget at which an event is recorded, unless the budget has its own; ascending. */
  @IsAscendingPercents() thresholdsPercent: number[] = [50, 80, 100];
}

/** `tollgate.yaml`, with everything that the operator decides. Read by `readConfigFile`. Unknown fields are errors. */
export class TollgateConfig {
  @MustMatch(/^[A-Z]{3}$/, 'an ISO 4217 code such as USD') currency: string = 'USD';
  @MustBeSections(ModelConfig, 'model') models!: ModelConfig[];
  /** Tenants without a plan get the first one. */
  @MustBeSections(PlanConfig, 'plan') plans!: PlanConfig[];
  @MustBeSection(BudgetsConfig) budgets: BudgetsConfig = new BudgetsConfig();
}

export type ConfigCheck = (next: TollgateConfig) => Promise<readonly string[]>;

/** The configuration in force, and its changes at run time. Injected into the apps. */
export abstract class ConfigSource {
  /** Read it at each use: a reload replaces the object. */
  abstract readonly current: TollgateConfig;
  /**
   * Called before a changed configuration takes effect. Returns a line for each obstacle: then it is refused, and the
   * old one stays in force. If a check rejects, the result is unknown, and the old one stays until the check succeeds.
   */
  abstract addCheck(check: ConfigCheck): void;
  /** Called after each accepted reload. */
  abstract onChange(listener: (config: TollgateConfig) => void): void;
  /** Checks at once for a newer configuration, and applies it if possible. Never rejects. */
  async refresh(): Promise<void> {}
  abstract close(): void;
}
