import { hash, timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { FormerSecretUse } from '../http/former-secret';
import { logger } from '../logging/logging';
import { metrics } from '../metrics/metrics';
import { baseUrl, openPort, type AddressSettings } from '../process/start-error';
import { allMetrics } from '../workers/as-worker';
import type { Health } from './health';

const SETTINGS: AddressSettings = { host: 'TOLLGATE_HEALTH_HOST', port: 'TOLLGATE_HEALTH_PORT' };
const REQUEST_TIMEOUT_MS = 5_000;
const LOOPBACK = /^(::ffff:)?127\.|^::1$/;
/** The headers of proxies. */
const FORWARDED = ['forwarded', 'x-forwarded-for', 'x-real-ip', 'via'];

interface Answer {
  status: number;
  type: string;
  body: string;
  headers?: Record<string, string>;
}

const PROBES = ['/livez', '/readyz', '/trafficz', '/metrics'] as const;
export type ProbePath = (typeof PROBES)[number];

/** What the caller may see. */
export interface ProbeCaller {
  /** /metrics: with the token, or for everybody if there is none. */
  mayReadMetrics: boolean;
  /** The reasons in /readyz: with the token, or for a caller on the same machine that is not a proxy. */
  mayReadReasons: boolean;
}

/** Says what a caller may see, and counts those that send a former token. */
export class ProbeAccess {
  private readonly former: FormerSecretUse;

  /** `metricsTokens`: those that are accepted, the one in force first; none if nobody needs one. */
  constructor(private readonly metricsTokens: readonly string[]) {
    this.former = new FormerSecretUse('metrics', metricsTokens);
  }

  callerOf({ headers, socket }: IncomingMessage): ProbeCaller {
    const place = this.metricsTokens.findIndex((token) => isBearer(headers.authorization, token));
    this.former.note(place, socket.remoteAddress);
    const hasToken = place >= 0;
    const isForwarded = FORWARDED.some((name) => headers[name] !== undefined);
    const isLocal = LOOPBACK.test(socket.remoteAddress ?? '') && !isForwarded;
    return { mayReadMetrics: this.metricsTokens.length === 0 || hasToken, mayReadReasons: hasToken || isLocal };
  }
}

/** The answer to a probe or a scraper. */
export async function answerProbe(path: ProbePath, health: Health, caller: ProbeCaller): Promise<Answer> {
  switch (path) {
    case '/livez':
      return json(200, { status: 'ok' });
    case '/readyz': {
      const readiness = await health.readiness();
      const { status } = readiness;
      return json(status === 'ok' ? 200 : 503, caller.mayReadReasons ? readiness : { status });
    }
    // For load balancers. 404 and not 503: on 404 HAProxy sends nothing new and lets running requests finish. On 503 it
    // would treat the process as down and end them.
    case '/trafficz':
      return health.takesWork() ? json(200, { status: 'ok' }) : json(404, { status: 'no new work' });
    case '/metrics':
      if (!caller.mayReadMetrics)
        return { ...json(401, { status: 'unauthorized' }), headers: { 'www-authenticate': 'Bearer' } };
      return { status: 200, type: metrics.contentType, body: await allMetrics() };
  }
}

/**
 * /livez (the event loop turns), /readyz (every required dependency answers), /trafficz (send new work) and /metrics,
 * for the platform, load balancers and Prometheus. Has its own port. Only /metrics can require a token. Only privileged
 * callers see the reasons in /readyz.
 */
export class HealthServer {
  private constructor(
    private readonly server: Server,
    readonly url: string,
  ) {}

  /** Rejects with StartError when the port cannot be opened. */
  static async listen(
    health: Health,
    host: string,
    port: number,
    metricsTokens: readonly string[] = [],
  ): Promise<HealthServer> {
    const access = new ProbeAccess(metricsTokens);
    const server = createServer({ requestTimeout: REQUEST_TIMEOUT_MS }, (request, response) => {
      answer(request, response, health, access).catch((error: unknown) => {
        logger('health').error({ err: error }, 'answering a probe failed');
        response.destroy();
      });
    });
    return new HealthServer(server, baseUrl(host, await openPort(server, host, port, SETTINGS)));
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.server.close(resolve));
    this.server.closeAllConnections();
    await closed;
  }
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  health: Health,
  access: ProbeAccess,
): Promise<void> {
  const asked = (request.url ?? '').split('?', 1)[0];
  const path =
    request.method === 'GET' || request.method === 'HEAD' ? PROBES.find((probe) => probe === asked) : undefined;
  const { status, type, body, headers }: Answer = path
    ? await answerProbe(path, health, access.callerOf(request))
    : json(404, { status: 'not found' });
  response.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(body), ...headers });
  response.end(request.method === 'HEAD' ? undefined : body);
}

/** Compares by hashes, in constant time. */
function isBearer(authorization = '', token: string): boolean {
  const given = /^Bearer +(.*)$/is.exec(authorization)?.[1]?.trim() ?? '';
  return timingSafeEqual(hash('sha256', given, 'buffer'), hash('sha256', token, 'buffer'));
}

const json = (status: number, value: unknown): Answer => ({
  status,
  type: 'application/json',
  body: `${JSON.stringify(value)}\n`,
});
