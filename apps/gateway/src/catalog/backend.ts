import { createHash } from 'node:crypto';
import { type BackendDialect, DEFAULT_PASSTHROUGH } from '@tollgate/contracts';
import { type BackendConfig, backendName, type BackendTimeoutsConfig, type ModelConfig } from '@tollgate/runtime';

/** How a backend is checked while it serves. */
export interface HealthCheck {
  /** From the root of its host. */
  path: string;
  intervalMs: number;
  /** The operator chose the path, so it must answer 2xx. Otherwise any answer below 500 will do. */
  isStrict: boolean;
}

/** Options of node:tls, in PEM. Never logged. */
export interface BackendTls {
  ca?: string;
  cert?: string;
  key?: string;
  servername?: string;
}

/** One address of a model. */
export interface Backend {
  /** Its name in usage events: without secrets, and the same after a restart. */
  name: string;
  /** `scheme://host:port`. */
  origin: string;
  /** Backends with the same key share connections: the origin, and what else their connections need. */
  connectionKey: string;
  /** Path before `/chat/completions`, e.g. `/v1`. */
  basePath: string;
  /** The model's name at this backend. */
  model: string;
  /** Value of the `authorization` header, or null. Never logged. */
  authorization: string | null;
  /** Other headers of each call: names and values in turn. Never logged. */
  headers: readonly string[];
  /** 0: it gets no calls. */
  weight: number;
  /** Infinity: no limit. */
  maxConcurrency: number;
  timeouts: BackendTimeoutsConfig;
  tls: BackendTls | null;
  health: HealthCheck | null;
  dialect: BackendDialect;
  /** Undocumented fields that are sent to it when a request has them. */
  passthrough: ReadonlySet<string>;
}

/** Paths that the engines answer quickly while they can serve. Others: the list of models, below the base path. */
const HEALTH_PATHS: Partial<Record<BackendDialect, string>> = {
  vllm: '/health',
  sglang: '/health',
  tgi: '/health',
  llamacpp: '/health',
  ollama: '/api/version',
};
const DEFAULT_HEALTH_INTERVAL_MS = 5_000;
/** Not checked by default: in our own process, or a public API that counts calls. */
const UNCHECKED: ReadonlySet<BackendDialect> = new Set(['simulator', 'openai']);

/** OpenAI accepts only one name of the output limit, and refuses a body that all other engines accept. */
function dialectOf({ hostname }: URL): BackendDialect {
  return hostname === 'api.openai.com' || hostname.endsWith('.openai.azure.com') ? 'openai' : 'any';
}

/** @param simulatorUrl base URL that the backend url "simulator:" stands for */
export function compileBackend(
  backend: BackendConfig,
  { id, passthrough, backends }: ModelConfig,
  simulatorUrl: string,
): Backend {
  const url = new URL(backend.url === 'simulator:' ? simulatorUrl : backend.url);
  const dialect = backend.url === 'simulator:' ? 'simulator' : (backend.dialect ?? dialectOf(url));
  const basePath = url.pathname.replace(/\/+$/, '');
  const tls = url.protocol === 'https:' ? compileTls(backend) : null;
  return {
    name: backendName(backend),
    origin: url.origin,
    connectionKey: connectionKey(url.origin, backend.timeouts?.connectMs, tls),
    basePath,
    model: backend.model ?? id,
    authorization: backend.apiKey === undefined ? null : `Bearer ${backend.apiKey}`,
    headers: Object.entries(backend.headers ?? {}).flat(),
    weight: backend.weight,
    maxConcurrency: backend.maxConcurrency ?? Infinity,
    timeouts: backend.timeouts ?? {},
    tls,
    health: compileHealth(backend, dialect, basePath, backends.length > 1),
    dialect,
    passthrough: new Set(passthrough ?? DEFAULT_PASSTHROUGH[dialect]),
  };
}

function compileTls({ tls }: BackendConfig): BackendTls | null {
  if (!tls) return null;
  return {
    ...(tls.ca !== undefined && { ca: tls.ca }),
    ...(tls.certificate !== undefined && { cert: tls.certificate }),
    ...(tls.key !== undefined && { key: tls.key }),
    ...(tls.serverName !== undefined && { servername: tls.serverName }),
  };
}

function connectionKey(origin: string, connectMs: number | undefined, tls: BackendTls | null): string {
  if (connectMs === undefined && tls === null) return origin;
  const hash = createHash('sha256').update(JSON.stringify(tls)).digest('base64url');
  return `${origin} ${connectMs ?? ''} ${hash}`;
}

function compileHealth(
  { health }: BackendConfig,
  dialect: BackendDialect,
  basePath: string,
  hasOthers: boolean,
): HealthCheck | null {
  if (health === false) return null;
  if (health) return { ...health, isStrict: true };
  if (!hasOthers || UNCHECKED.has(dialect)) return null;
  const path = HEALTH_PATHS[dialect] ?? `${basePath}/models`;
  return { path, intervalMs: DEFAULT_HEALTH_INTERVAL_MS, isStrict: false };
}
