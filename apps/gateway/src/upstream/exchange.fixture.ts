import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Backend, CatalogModel } from '../catalog/catalog';
import type { AnswerSink } from './exchange/call';
import { DEFAULT_UPSTREAM_LIMITS } from './fleet/connections';
import { type OpenMemory, PlainRelay } from './exchange/plain-answer';
import { Upstream } from './upstream';

/** How a backend of a test answers a request. */
export type Answer = (request: IncomingMessage, response: ServerResponse) => void;

/** A backend that counts the requests that it got. */
export type CountingBackend = Backend & { asked: number };

const DEFAULT_TIMEOUT_MS = 10_000;
const TOTAL_TIMEOUT_MS = 60_000;
/** A closed connection counts as stale, however late a slow machine notices the close. */
const ALWAYS_STALE_MS = 600_000;
const servers: Server[] = [];
let models = 0;
const upstreams: Upstream[] = [];

/** @param timeoutMs of the head and of silence; the total time is longer than any machine stands still */
export function upstreamWith({
  timeoutMs = DEFAULT_TIMEOUT_MS,
  connectTimeoutMs = timeoutMs,
  staleCloseMs = ALWAYS_STALE_MS,
}: {
  timeoutMs?: number;
  connectTimeoutMs?: number;
  staleCloseMs?: number;
}): Upstream {
  const upstream = new Upstream({
    connectTimeoutMs,
    plainHeadTimeoutMs: timeoutMs,
    streamHeadTimeoutMs: timeoutMs,
    idleTimeoutMs: timeoutMs,
    plainTotalTimeoutMs: TOTAL_TIMEOUT_MS,
    streamTotalTimeoutMs: DEFAULT_UPSTREAM_LIMITS.streamTotalTimeoutMs,
    staleCloseMs,
  });
  upstreams.push(upstream);
  return upstream;
}

/** Closes all upstreams and backends of the test file. */
export async function closeAll(): Promise<void> {
  await Promise.all(upstreams.map((upstream) => upstream.close()));
  for (const server of servers) server.closeAllConnections();
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
}

/** A backend with this URL and nothing special. */
export function backendAt(origin: string, basePath = '/v1'): Backend {
  return {
    name: origin + basePath,
    origin,
    connectionKey: origin,
    basePath,
    model: 'inner',
    authorization: 'Bearer secret',
    headers: [],
    weight: 1,
    maxConcurrency: Infinity,
    timeouts: {},
    tls: null,
    health: null,
    dialect: 'any',
    passthrough: new Set<string>(),
  };
}

export async function backend(answer: Answer): Promise<CountingBackend> {
  const server = createServer((request, response) => {
    self.asked += 1;
    request.resume().on('end', () => answer(request, response));
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const self: CountingBackend = {
    ...backendAt(`http://127.0.0.1:${(server.address() as AddressInfo).port}`),
    asked: 0,
  };
  return self;
}

/** Memory of answers that is never used up. */
export const UNLIMITED: OpenMemory = () => ({ growTo: () => true, arrived: () => {}, release: () => {} });

/** A relay that takes every answer as it is. */
export function wholeRelay(): PlainRelay<Buffer> {
  return new PlainRelay((answer) => Promise.resolve({ kind: 'usable', answer }), UNLIMITED);
}

/** An exchange whose body is the backend's name for the model. */
export function exchangeWith<T>(relay: PlainRelay<T>, backends: Backend[], upstream: Upstream) {
  return exchangeOf(modelWith(backends), relay, upstream);
}

/** Another model each time, so that no test uses up the retries of another. */
export function modelWith(backends: Backend[], queue = { maxRequests: 0, maxWaitMs: 1 }): CatalogModel {
  return { id: `model-${(models += 1)}`, backends, queue } as unknown as CatalogModel;
}

export function exchangeOf<T>(
  model: CatalogModel,
  relay: PlainRelay<T>,
  upstream: Upstream,
  fallbacks: CatalogModel[] = [],
  mayBeAtFault = (_: CatalogModel) => false,
) {
  const call = { model, fallbacks, path: '/x', stream: false, affinity: null, headers: [], request: { logged: {} } };
  return upstream.exchange({ ...call, mayBeAtFault, body: (one) => one.model }, relay);
}

/** A stream, and what its client gets. @param readsOn whether the client takes more after this number of parts */
export function streamFrom(one: Backend, upstream: Upstream, readsOn: (parts: number) => boolean) {
  const heard: string[] = [];
  const sink: AnswerSink = {
    onHead: () => {},
    onFallback: () => {},
    mayRestart: () => false,
    restart: () => {},
    onData: (block) => readsOn(heard.push(block.toString())),
    onEnd: () => void heard.push('end'),
    onFailure: ({ kind }) => void heard.push(kind),
  };
  const call = { model: modelWith([one]), fallbacks: [], path: '/x', stream: true, affinity: null, headers: [] };
  return {
    heard,
    exchange: upstream.exchange(
      { ...call, mayBeAtFault: () => false, body: () => '{}', request: { logged: {} } },
      sink,
    ),
  };
}

export function ask(upstream: Upstream, ...backends: Backend[]) {
  const relay = wholeRelay();
  return relay.run(exchangeWith(relay, backends, upstream));
}

/** Lets the clock of this process jump forward, and stand still in between, so that no test waits or races. */
export function useJumpingClock(): (ms: number) => void {
  let spy: jest.SpyInstance | null = null;
  afterEach(() => {
    spy?.mockRestore();
    spy = null;
  });
  return (ms) => {
    const nowMs = performance.now() + ms;
    spy ??= jest.spyOn(performance, 'now');
    spy.mockReturnValue(nowMs);
  };
}

/** An origin on which nothing listens any more. */
export async function closedOrigin(): Promise<string> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return `http://127.0.0.1:${port}`;
}

/** All requests that these backends got. */
export function askedOf(backends: readonly CountingBackend[]): number {
  return backends.reduce((total, { asked }) => total + asked, 0);
}
