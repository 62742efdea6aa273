import 'reflect-metadata';
import { type Dialect, DIALECTS } from '@tollgate/contracts';
import { Type } from 'class-transformer';
import {
  ArrayMinSize,
  ArrayUnique,
  IsArray,
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
import { IsAscendingPercents } from './is-ascending-percents';
import { IsBackendUrl } from './is-backend-url';
import { IsMediaUrls } from './is-media-urls';
import { IsMetricsUrl } from './is-metrics-url';
import { IsPrice } from './is-price';

const MODEL_ID = /^[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}$/;
const PLAIN_ID = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/;
const FIELD_NAME = /^[a-z][a-z0-9_]{0,63}$/;
const FIELD_RULE = { message: 'each of $property must be a field name: lower-case letters, digits and _' };
const NAME_RULE = { message: '$property must be letters, digits and . _ : / -, and start with a letter or digit' };

/** Names the id that comes twice; of what is no list it says that. */
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

export class BackendConfig {
  /** Base URL that ends in /v1, or "simulator:" for the built-in one. */
  @IsBackendUrl() url!: string;
  /** The model's name at the backend; the public id when absent. */
  @IsOptional() @Length(1, 256) model?: string;
  @IsOptional() @Length(1, 4096) apiKey?: string;
  @IsInt() @Min(1) @Max(1000) weight: number = 1;
  /** Absent: the body is one that every dialect reads alike. */
  @IsOptional() @IsIn(DIALECTS) dialect?: Dialect;
  /** The backend's own Prometheus page, against which `reconcile --backends` holds the books. */
  @IsOptional() @IsMetricsUrl() metrics?: string;
}

/**
 * A backend's token counts are believed from `min` to `max` times our own count; outside of it our count is charged.
 */
export class UsageBandConfig {
  @IsNumber() @Min(0) @Max(1) min: number = 0.5;
  @IsNumber() @Min(1) @Max(1_000) max: number = 2;
}

export class ModelConfig {
  @Matches(MODEL_ID, NAME_RULE) id!: string;
  @IsIn(['chat', 'embedding']) kind!: 'chat' | 'embedding';
  @Length(1, 64) ownedBy: string = 'tollgate';
  @IsInt() @Min(1) @Max(100_000_000) contextTokens!: number;
  /** Chat: the largest `max_tokens`. Ignored for embeddings. */
  @IsInt() @Min(1) @Max(100_000_000) maxOutputTokens: number = 4096;
  @IsIn(['o200k_base', 'cl100k_base', 'p50k_base', 'r50k_base']) tokenizer:
    'o200k_base' | 'cl100k_base' | 'p50k_base' | 'r50k_base' = 'o200k_base';
  /**
   * What the model's chat template writes around each message, and once around all of them (a default system prompt
   * included): by default as OpenAI's do. ChatML: 5 and 3.
   */
  @IsInt() @Min(0) @Max(1_000) templateTokensPerMessage: number = 3;
  @IsInt() @Min(0) @Max(100_000) templateTokens: number = 3;
  /** Tokens that one image can cost at most, and one audio part; without it such parts are refused. */
  @IsOptional() @IsInt() @Min(1) @Max(10_000_000) maxTokensPerImage?: number;
  @IsOptional() @IsInt() @Min(1) @Max(10_000_000) maxTokensPerAudio?: number;
  /**
   * Fields beyond the documented ones that may reach a backend; absent: the harmless sampling fields of each backend's
   * dialect.
   */
  @IsOptional() @IsArray() @ArrayUnique() @Matches(FIELD_NAME, { each: true, ...FIELD_RULE }) passthrough?: string[];
  /** Media by `https:` URL, which the backend fetches: false, true, or the domains. `data:` URLs are always taken. */
  @IsMediaUrls() mediaUrls: boolean | string[] = false;
  @IsDefined() @ValidateNested() @Type(() => UsageBandConfig) usageBand: UsageBandConfig = new UsageBandConfig();
  @IsDefined() @ValidateNested() @Type(() => PriceConfig) price!: PriceConfig;
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
  /** Of each key with this profile, unless the operator set one for the key; null: none. */
  @IsOptional() @IsInt() @Min(0) @Max(Number.MAX_SAFE_INTEGER) monthlyBudgetCents: number | null = null;
}

export class PlanConfig {
  @Matches(PLAIN_ID) id!: string;
  @IsDefined() @ValidateNested() @Type(() => LimitsConfig) limits!: LimitsConfig;
  /** Of each tenant with this plan, over all its keys, unless the operator set one for the tenant; null: none. */
  @IsOptional() @IsInt() @Min(0) @Max(Number.MAX_SAFE_INTEGER) monthlyBudgetCents: number | null = null;
  /** The first profile is the one of keys that name none. */
  @IsArray()
  @ArrayMinSize(1)
  @ArrayUnique((profile: ProfileConfig) => profile.id, idsOfTheirOwn)
  @ValidateNested({ each: true })
  @Type(() => ProfileConfig)
  profiles!: ProfileConfig[];
}

export class BudgetsConfig {
  /** Percent of a monthly budget at which an event is recorded, unless the budget has its own; ascending. */
  @IsAscendingPercents() thresholdsPercent: number[] = [50, 80, 100];
}

/** `tollgate.yaml`: all that an operator decides. Read by `readConfigFile`; unknown fields are errors. */
export class TollgateConfig {
  @Matches(/^[A-Z]{3}$/, { message: '$property must be an ISO 4217 code such as USD' }) currency: string = 'USD';
  @IsArray()
  @ArrayMinSize(1)
  @ArrayUnique((model: ModelConfig) => model.id, idsOfTheirOwn)
  @ValidateNested({ each: true })
  @Type(() => ModelConfig)
  models!: ModelConfig[];
  /** The first plan is the one of tenants that name none. */
  @IsArray()
  @ArrayMinSize(1)
  @ArrayUnique((plan: PlanConfig) => plan.id, idsOfTheirOwn)
  @ValidateNested({ each: true })
  @Type(() => PlanConfig)
  plans!: PlanConfig[];
  @IsDefined() @ValidateNested() @Type(() => BudgetsConfig) budgets: BudgetsConfig = new BudgetsConfig();
}

export type ConfigCheck = (next: TollgateConfig) => Promise<readonly string[]>;

/** The configuration in force, and its changes while running. Injected into the apps. */
export abstract class ConfigSource {
  /** Read it at each use: a reload replaces the object. */
  abstract readonly current: TollgateConfig;
  /**
   * Asked before a changed configuration takes effect: a line for each thing that stands in its way; then it is
   * refused, and the old one stays. A check that rejects cannot say: the old one stays until it can.
   */
  abstract addCheck(check: ConfigCheck): void;
  /** Called after each accepted reload. */
  abstract onChange(listener: (config: TollgateConfig) => void): void;
  /** Looks at once whether there is a newer configuration, and takes it over where it may. Never rejects. */
  async refresh(): Promise<void> {}
  abstract close(): void;
}
