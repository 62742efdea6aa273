import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { logger } from '../logging';
import { metrics } from '../metrics';
import { baseUrl, explainListen, type AddressSettings } from '../process/start-error';
import type { Health } from './health';

const SETTINGS: AddressSettings = { host: 'TOLLGATE_HEALTH_HOST', port: 'TOLLGATE_HEALTH_PORT' };
const REQUEST_TIMEOUT_MS = 5_000;

interface Answer {
  status: number;
  type: string;
  body: string;
}

const PROBES = ['/livez', '/readyz', '/metrics'] as const;
export type ProbePath = (typeof PROBES)[number];

/** What a probe or a scraper is told. */
export async function answerProbe(path: ProbePath, health: Health): Promise<Answer> {
  switch (path) {
    case '/livez':
      return json(200, { status: 'ok' });
    case '/readyz': {
      const readiness = await health.readiness();
      return json(readiness.status === 'ok' ? 200 : 503, readiness);
    }
    case '/metrics':
      return { status: 200, type: metrics.contentType, body: await metrics.metrics() };
  }
}

/** /livez (the event loop turns), /readyz (every required dependency answers) and /metrics, for the platform and Prometheus: a port of its own, without a secret. */
export class HealthServer {
  private constructor(
    private readonly server: Server,
    readonly url: string,
  ) {}

  /** Rejects with StartError when the port cannot be had. */
  static async listen(health: Health, host: string, port: number): Promise<HealthServer> {
    const server = createServer({ requestTimeout: REQUEST_TIMEOUT_MS }, (request, response) => {
      answer(request, response, health).catch((error: unknown) => {
        logger('health').error({ err: error }, 'a probe was not answered');
        response.destroy();
      });
    });
    try {
      await new Promise<void>((resolve, reject) => {
        server.once('error', reject);
        server.listen(port, host, resolve);
      });
    } catch (error) {
      throw explainListen(error, host, port, SETTINGS);
    }
    return new HealthServer(server, baseUrl(host, (server.address() as AddressInfo).port));
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.server.close(resolve));
    this.server.closeAllConnections();
    await closed;
  }
}

async function answer(request: IncomingMessage, response: ServerResponse, health: Health): Promise<void> {
  const asked = (request.url ?? '').split('?', 1)[0];
  const path =
    request.method === 'GET' || request.method === 'HEAD' ? PROBES.find((probe) => probe === asked) : undefined;
  const { status, type, body } = path ? await answerProbe(path, health) : json(404, { status: 'not found' });
  response.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(body) });
  response.end(request.method === 'HEAD' ? undefined : body);
}

const json = (status: number, value: unknown): Answer => ({
  status,
  type: 'application/json',
  body: `${JSON.stringify(value)}\n`,
});
