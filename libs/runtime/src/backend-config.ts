import 'reflect-metadata';
import { type Dialect, DIALECTS } from '@tollgate/contracts';
import { Type } from 'class-transformer';
import {
  IsIn,
  IsInt,
  IsObject,
  IsOptional,
  Length,
  Matches,
  Max,
  Min,
  ValidateIf,
  ValidateNested,
} from 'class-validator';
import { IsBackendUrl } from './is-backend-url';
import { IsHeaders } from './is-headers';
import { IsMetricsUrl } from './is-metrics-url';

const MAX_TIMEOUT_MS = 86_400_000;
const PATH_RULE = { message: '$property must be a path such as /health, without query or #' };

/** Time limits of one call, in milliseconds. Absent: the defaults of docs/operating/backends.md. */
export class BackendTimeoutsConfig {
  /** Until a connection is open. */
  @IsOptional() @IsInt() @Min(10) @Max(MAX_TIMEOUT_MS) connectMs?: number;
  /** Until the head of the answer. The head of a plain answer comes when all output is generated. */
  @IsOptional() @IsInt() @Min(10) @Max(MAX_TIMEOUT_MS) firstByteMs?: number;
  /** Between two chunks. */
  @IsOptional() @IsInt() @Min(10) @Max(MAX_TIMEOUT_MS) idleMs?: number;
  /** From the first attempt of the request to the end of its answer. Checked when bytes arrive. */
  @IsOptional() @IsInt() @Min(10) @Max(MAX_TIMEOUT_MS) totalMs?: number;
}

export class BackendHealthConfig {
  /** From the root of the backend's host. It is healthy if GET answers 2xx. */
  @Matches(/^\/[^\s?#]*$/, PATH_RULE) path!: string;
  @IsInt() @Min(100) @Max(3_600_000) intervalMs: number = 5_000;
}

/** References to PEM texts: "file:path" or "${NAME}". */
export class BackendTlsConfig {
  /** The authorities that may have signed the backend's certificate, instead of the well-known ones. */
  @IsOptional() @Length(1, 1_048_576) ca?: string;
  /** Our certificate and its key, for backends that ask for one. */
  @IsOptional() @Length(1, 1_048_576) certificate?: string;
  @IsOptional() @Length(1, 1_048_576) key?: string;
  /** The name that the backend's certificate must have. Absent: the host of the URL. */
  @IsOptional() @Matches(/^[A-Za-z0-9.-]{1,253}$/) serverName?: string;
}

export class BackendConfig {
  /** The base URL, ending in /v1, or "simulator:" for the built-in one. */
  @IsBackendUrl() url!: string;
  /** The model's name at the backend. The public id when absent. */
  @IsOptional() @Length(1, 256) model?: string;
  @IsOptional() @Length(1, 4096) apiKey?: string;
  /** Its share of the calls beside the model's other backends. 0: none. */
  @IsInt() @Min(0) @Max(1000) weight: number = 1;
  /** The most calls in progress in one process. Absent: no limit. */
  @IsOptional() @IsInt() @Min(1) @Max(1_000_000) maxConcurrency?: number;
  @IsOptional() @IsObject() @ValidateNested() @Type(() => BackendTimeoutsConfig) timeouts?: BackendTimeoutsConfig;
  /** False: no checks. Absent: checks if the model has several backends. */
  @ValidateIf(({ health }: BackendConfig) => health !== undefined && health !== null && health !== false)
  @IsObject()
  @ValidateNested()
  @Type(() => BackendHealthConfig)
  health?: BackendHealthConfig | false;
  @IsOptional() @IsObject() @ValidateNested() @Type(() => BackendTlsConfig) tls?: BackendTlsConfig;
  /** Headers that each call gets: names, with references to their values. */
  @IsOptional() @IsHeaders() headers?: Record<string, string>;
  /** Absent: the body must mean the same in every dialect. */
  @IsOptional() @IsIn(DIALECTS) dialect?: Dialect;
  /** The backend's own Prometheus page, with which `reconcile --backends` compares the books. */
  @IsOptional() @IsMetricsUrl() metrics?: string;
}
