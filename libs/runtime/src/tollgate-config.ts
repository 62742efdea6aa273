import 'reflect-metadata';
import { Type } from 'class-transformer';
import {
  ArrayMaxSize,
  ArrayMinSize,
  ArrayUnique,
  IsArray,
  IsBoolean,
  IsDefined,
  IsIn,
  IsInt,
  IsNumber,
  IsOptional,
  IsString,
  Length,
  Matches,
  Max,
  Min,
  ValidateNested,
  type ValidationOptions,
} from 'class-validator';
import { BackendConfig } from './backend-config';
import { IsAscendingPercents } from './is-ascending-percents';
import { IsMediaUrls } from './is-media-urls';
import { IsPrice } from './is-price';

const MODEL_ID = /^[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}$/;
const PLAIN_ID = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/;
const FIELD_NAME = /^[a-z][a-z0-9_]{0,63}$/;
const FIELD_RULE = { message: 'each of $property must be a field name: lower-case letters, digits and _' };
const ALIAS_RULE = { message: 'each of $property must be a name like an id: letters, digits and . _ : / -' };
const NAME_RULE = { message: '$property must be letters, digits and . _ : / -, and start with a letter or digit' };

/** Each may cost one more run of a request. */
const MAX_FALLBACKS = 3;

/** Names the id that occurs twice. For a value that is not a list, says that it must be one. */
const idsOfTheirOwn: ValidationOptions = {
  message: ({ value }) => {
    if (!Array.isArray(value)) return '$property must be a list, with one at least';
    const ids = (value as ({ id?: unknown } | null)[]).map((one) => one?.id);
    return `$property must not have the id "${String(ids.find((id, index) => ids.indexOf(id) < index))}" twice`;
  },
};

/** Prices per million tokens, `request` per request; decimal strings, "0" for free. */
export class PriceConfig {
  @IsPrice() input!: string;
  @IsOptional() @IsPrice() cachedInput?: string;
  @IsPrice() output!: string;
  @IsPrice() request: string = '0';
}

/** What happens to requests while all good backends of the model are at `maxConcurrency`. In each process. */
export class QueueConfig {
  /** They wait for a place. More get 503. */
  @IsInt() @Min(0) @Max(100_000) maxRequests: number = 100;
  @IsInt() @Min(1) @Max(600_000) maxWaitMs: number = 10_000;
}

/**
 * The accepted range of a backend's token counts, as factors of the gateway's own count. Outside it the gateway's count
 * is charged.
 */
export class UsageBandConfig {
  @IsNumber() @Min(0) @Max(1) min: number = 0.5;
  @IsNumber() @Min(1) @Max(1_000) max: number = 2;
}

export class ModelConfig {
  @Matches(MODEL_ID, NAME_RULE) id!: string;
  /** Other names that a request may use for it. The answer has the name that was used. */
  @IsArray() @ArrayUnique() @Matches(MODEL_ID, { each: true, ...ALIAS_RULE }) aliases: string[] = [];
  @IsIn(['chat', 'embedding']) kind!: 'chat' | 'embedding';
  @Length(1, 64) ownedBy: string = 'tollgate';
  @IsInt() @Min(1) @Max(100_000_000) contextTokens!: number;
  /** For chat: the largest `max_tokens`. Absent: the whole context. Ignored for embeddings. */
  @IsOptional() @IsInt() @Min(1) @Max(100_000_000) maxOutputTokens?: number;
  /** A larger `max_tokens` is lowered to `maxOutputTokens`. Otherwise it is refused. */
  @IsBoolean() clamp: boolean = false;
  /** False: the model cannot use tools, or keep to a JSON schema. Requests that ask for it are refused. */
  @IsBoolean() tools: boolean = true;
  @IsBoolean() jsonSchema: boolean = true;
  /** `prefix`, `user`: requests with the same beginning, or of the same `user`, go to the same backend. */
  @IsIn(['load', 'prefix', 'user']) routing: 'load' | 'prefix' | 'user' = 'load';
  @IsIn(['o200k_base', 'cl100k_base', 'p50k_base', 'r50k_base']) tokenizer:
    'o200k_base' | 'cl100k_base' | 'p50k_base' | 'r50k_base' = 'o200k_base';
  /**
   * Tokens that the model's chat template adds to each message, and once to all of them (including a default system
   * prompt). The defaults are OpenAI's. ChatML: 5 and 3.
   */
  @IsInt() @Min(0) @Max(1_000) templateTokensPerMessage: number = 3;
  @IsInt() @Min(0) @Max(100_000) templateTokens: number = 3;
  /** The maximum tokens of a part of each kind. Without it such parts are refused. */
  @IsOptional() @IsInt() @Min(1) @Max(10_000_000) maxTokensPerImage?: number;
  @IsOptional() @IsInt() @Min(1) @Max(10_000_000) maxTokensPerAudio?: number;
  @IsOptional() @IsInt() @Min(1) @Max(10_000_000) maxTokensPerVideo?: number;
  @IsOptional() @IsInt() @Min(1) @Max(10_000_000) maxTokensPerFile?: number;
  /** Undocumented fields that may reach a backend. Absent: the harmless sampling fields of each backend's dialect. */
  @IsOptional() @IsArray() @ArrayUnique() @Matches(FIELD_NAME, { each: true, ...FIELD_RULE }) passthrough?: string[];
  /**
   * Media by `https:` URL, which the backend fetches: false, true, or the domains. `data:` URLs are always accepted.
   */
  @IsMediaUrls() mediaUrls: boolean | string[] = false;
  @IsDefined() @ValidateNested() @Type(() => UsageBandConfig) usageBand: UsageBandConfig = new UsageBandConfig();
  @IsDefined() @ValidateNested() @Type(() => PriceConfig) price!: PriceConfig;
  @IsDefined() @ValidateNested() @Type(() => QueueConfig) queue: QueueConfig = new QueueConfig();
  /** Ids of models that answer, in this order, when no backend of this one can. They have the price of what serves. */
  @IsArray() @ArrayUnique() @ArrayMaxSize(MAX_FALLBACKS) @IsString({ each: true }) fallback: string[] = [];
  @IsArray() @ArrayMinSize(1) @ValidateNested({ each: true }) @Type(() => BackendConfig) backends!: BackendConfig[];
}

export class LimitsConfig {
  @IsInt() @Min(1) @Max(100_000_000) requestsPerMinute!: number;
  @IsInt() @Min(1) @Max(1_000_000_000_000) tokensPerMinute!: number;
  @IsInt() @Min(1) @Max(1_000_000) concurrency!: number;
}

export class ProfileConfig {
  @Matches(PLAIN_ID) id!: string;
  /** Public model ids, or "*" for all. */
  @IsArray() @IsString({ each: true }) models: string[] = ['*'];
  @IsDefined() @ValidateNested() @Type(() => LimitsConfig) limits!: LimitsConfig;
  /** The budget of each key with this profile, unless the operator set one for the key. Null: none. */
  @IsOptional() @IsInt() @Min(0) @Max(Number.MAX_SAFE_INTEGER) monthlyBudgetCents: number | null = null;
  /** False: the header Idempotency-Key is ignored, and no answer is kept for repeats. Absent: as the plan says. */
  @IsOptional() @IsBoolean() idempotency?: boolean;
  /** True: `usage` of answers has the cost of the request, in `cost`. */
  @IsOptional() @IsBoolean() usageCost?: boolean;
}

export class PlanConfig {
  @Matches(PLAIN_ID) id!: string;
  @IsDefined() @ValidateNested() @Type(() => LimitsConfig) limits!: LimitsConfig;
  /** The budget of each tenant with this plan, over all its keys, unless the operator set one. Null: none. */
  @IsOptional() @IsInt() @Min(0) @Max(Number.MAX_SAFE_INTEGER) monthlyBudgetCents: number | null = null;
  /** False: the header Idempotency-Key is ignored, and no answer is kept, unless the profile says otherwise. */
  @IsOptional() @IsBoolean() idempotency?: boolean;
  /** Keys without a profile get the first one. */
  @IsArray()
  @ArrayMinSize(1)
  @ArrayUnique((profile: ProfileConfig) => profile.id, idsOfTheirOwn)
  @ValidateNested({ each: true })
  @Type(() => ProfileConfig)
  profiles!: ProfileConfig[];
}

export class BudgetsConfig {
  /** Percentages of a monthly budget at which an event is recorded, unless the budget has its own; ascending. */
  @IsAscendingPercents() thresholdsPercent: number[] = [50, 80, 100];
}

/** `tollgate.yaml`, with everything that the operator decides. Read by `readConfigFile`. Unknown fields are errors. */
export class TollgateConfig {
  @Matches(/^[A-Z]{3}$/, { message: '$property must be an ISO 4217 code such as USD' }) currency: string = 'USD';
  @IsArray()
  @ArrayMinSize(1)
  @ArrayUnique((model: ModelConfig) => model.id, idsOfTheirOwn)
  @ValidateNested({ each: true })
  @Type(() => ModelConfig)
  models!: ModelConfig[];
  /** Tenants without a plan get the first one. */
  @IsArray()
  @ArrayMinSize(1)
  @ArrayUnique((plan: PlanConfig) => plan.id, idsOfTheirOwn)
  @ValidateNested({ each: true })
  @Type(() => PlanConfig)
  plans!: PlanConfig[];
  @IsDefined() @ValidateNested() @Type(() => BudgetsConfig) budgets: BudgetsConfig = new BudgetsConfig();
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
