import 'reflect-metadata';
import { type Dialect, DIALECTS } from '@tollgate/contracts';
import { ValidateIf } from 'class-validator';
import {
  MayBeAbsent,
  NullIsAbsent,
  MustBeOneOf,
  MustBeSection,
  MustBeText,
  MustBeWhole,
  MustMatch,
} from './config-rules';
import { IsBackendUrl } from './is-backend-url';
import { IsHeaders } from './is-headers';
import { IsMetricsUrl } from './is-metrics-url';

const MAX_TIMEOUT_MS = 86_400_000;
const PATH = 'a path such as /health, in printable ASCII, with one slash first and without query, # or \\';

/** Time limits of one call, in milliseconds. Absent: the defaults of docs/operating/backends.md. */
export class BackendTimeoutsConfig {
  /** Until a connection is open. */
  @MayBeAbsent() @MustBeWhole(10, MAX_TIMEOUT_MS) connectMs?: number;
  /** Until the head of the answer. The head of a plain answer comes when all output is generated. */
  @MayBeAbsent() @MustBeWhole(10, MAX_TIMEOUT_MS) firstByteMs?: number;
  /** Between two chunks. */
  @MayBeAbsent() @MustBeWhole(10, MAX_TIMEOUT_MS) idleMs?: number;
  /** From the first attempt of the request to the end of its answer. Checked when bytes arrive. */
  @MayBeAbsent() @MustBeWhole(10, MAX_TIMEOUT_MS) totalMs?: number;
}

export class BackendHealthConfig {
  /** From the root of the backend's host. It is healthy if GET answers 2xx. */
  @MustMatch(/^(?!\/\/)\/(?:(?![?#\\])[\x21-\x7e])*$/, PATH) path!: string;
  @MustBeWhole(100, 3_600_000) intervalMs: number = 5_000;
}

/** References to PEM texts: "file:path" or "${NAME}". */
export class BackendTlsConfig {
  /** The authorities that may have signed the backend's certificate, instead of the well-known ones. */
  @MayBeAbsent() @MustBeText(1_048_576) ca?: string;
  /** Our certificate and its key, for backends that ask for one. */
  @MayBeAbsent() @MustBeText(1_048_576) certificate?: string;
  @MayBeAbsent() @MustBeText(1_048_576) key?: string;
  /** The name that the backend's certificate must have. Absent: the host of the URL. */
  @MayBeAbsent() @MustMatch(/^[A-Za-z0-9.-]{1,253}$/, 'the name of a host') serverName?: string;
}

export class BackendConfig {
  /** The base URL, ending in /v1, or "simulator:" for the built-in one. */
  @IsBackendUrl() url!: string;
  /** The model's name at the backend. The public id when absent. */
  @MayBeAbsent() @MustBeText(256) model?: string;
  /** Sent in a header, which carries no other characters. */
  @MayBeAbsent() @MustMatch(/^[\x20-\x7e]{1,4096}$/, 'a text of 1 to 4,096 printable ASCII characters') apiKey?: string;
  /** Its share of the calls beside the model's other backends. 0: none. */
  @MustBeWhole(0, 1000) weight: number = 1;
  /** The most calls in progress in one process. Absent: no limit. */
  @MayBeAbsent() @MustBeWhole(1, 1_000_000) maxConcurrency?: number;
  @MayBeAbsent() @MustBeSection(BackendTimeoutsConfig) timeouts?: BackendTimeoutsConfig;
  /** False: no checks. Absent: checks if the model has several backends. */
  @NullIsAbsent()
  @ValidateIf(({ health }: BackendConfig) => health !== undefined && health !== false)
  @MustBeSection(BackendHealthConfig, 'false, or a mapping with a path')
  health?: BackendHealthConfig | false;
  @MayBeAbsent() @MustBeSection(BackendTlsConfig) tls?: BackendTlsConfig;
  /** Headers that each call gets: names, with references to their values. */
  @MayBeAbsent() @IsHeaders() headers?: Record<string, string>;
  /** Absent: the body must mean the same in every dialect. */
  @MayBeAbsent() @MustBeOneOf(...DIALECTS) dialect?: Dialect;
  /** The backend's own Prometheus page, with which `reconcile --backends` compares the books. */
  @MayBeAbsent() @IsMetricsUrl() metrics?: string;
}
