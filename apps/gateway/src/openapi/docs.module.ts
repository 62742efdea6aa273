import { Module, type OnModuleInit } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { openApiYaml } from './document';

const SWAGGER_UI = dirname(require.resolve('swagger-ui-dist/package.json'));
const PAGE = join(__dirname, 'page');
/** The files of the page. No other files are served. */
const ASSETS = [
  { name: 'page.js', folder: PAGE, type: 'text/javascript; charset=utf-8' },
  { name: 'swagger-ui-bundle.js', folder: SWAGGER_UI, type: 'text/javascript; charset=utf-8' },
  { name: 'swagger-ui.css', folder: SWAGGER_UI, type: 'text/css; charset=utf-8' },
  { name: 'favicon-32x32.png', folder: SWAGGER_UI, type: 'image/png' },
];
const ASSETS_MAX_AGE_SECONDS = 3_600;
const DOCUMENT_PATH = '/docs/api/openapi.yaml';
/** All paths of the documentation. They support GET only. */
export const DOCS_PATHS: readonly string[] = [
  '/docs',
  '/docs/',
  DOCUMENT_PATH,
  ...ASSETS.map(({ name }) => `/docs/ui/${name}`),
];
/**
 * Allows nothing from other hosts and no inline script. Swagger UI sets styles on elements and draws its icons from
 * data: URLs.
 */
const CONTENT_SECURITY_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; " +
  "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/**
 * The documentation of both public surfaces, on the public port: the page at /docs, and the OpenAPI document at
 * /docs/api/openapi.yaml. It loads nothing from other hosts, and serves only the listed files.
 */
@Module({})
export class DocsModule implements OnModuleInit {
  constructor(private readonly host: HttpAdapterHost) {}

  onModuleInit(): void {
    const server = this.host.httpAdapter.getInstance<FastifyInstance>();
    server.get(DOCUMENT_PATH, (_request, reply) =>
      send(reply, 'application/yaml; charset=utf-8', 'no-cache', openApiYaml()),
    );
    // All answers share one copy of a file in memory, as anybody may ask for them often and read them slowly.
    const page = readFileSync(join(PAGE, 'index.html'));
    server.get('/docs', (_request, reply) => {
      reply.header('content-security-policy', CONTENT_SECURITY_POLICY);
      return send(reply, 'text/html; charset=utf-8', 'no-cache', page);
    });
    // The links of the page are relative, so that it works behind a proxy that adds a path prefix. They would break
    // after a trailing slash.
    server.get('/docs/', (_request, reply) => reply.redirect('../docs', 308));
    for (const { name, folder, type } of ASSETS) {
      const file = readFileSync(join(folder, name));
      server.get(`/docs/ui/${name}`, (_request, reply) =>
        send(reply, type, `public, max-age=${ASSETS_MAX_AGE_SECONDS}`, file),
      );
    }
  }
}

function send(reply: FastifyReply, type: string, caching: string, body: string | Buffer): FastifyReply {
  return reply.type(type).headers({ 'cache-control': caching, 'x-content-type-options': 'nosniff' }).send(body);
}
