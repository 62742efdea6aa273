import type { FastifyReply, FastifyRequest } from 'fastify';
import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { sendError } from './envelope';
import { ConsoleError } from './errors';
import { Preloads } from './preloads';
import { securityHeaders } from './security-headers';

const BUILT = join(__dirname, '../web');
const NONCE_BYTES = 16;
/** In `web/index.html`, for the style sheets that the component kit makes at run time. */
const NONCE_PLACE = '__NONCE__';
const TYPES: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.json': 'application/json',
  '.woff2': 'font/woff2',
};

/** The endings of the compressed copies of an asset, which the build makes (`vite.config.mjs`). */
const COMPRESSED = ['.br', '.gz'];

interface Asset {
  type: string;
  plain: Buffer;
  gzip: Buffer;
  brotli: Buffer;
}

/** The built single-page app, in memory: a few hundred kilobytes, compressed when they were built. */
export class Pages {
  private readonly index: string;
  private readonly preloads: Preloads;
  private readonly assets: ReadonlyMap<string, Asset>;

  constructor() {
    if (!existsSync(join(BUILT, 'index.html')))
      throw new Error(`the pages of the console are not built: run npm run build (${BUILT})`);
    this.index = readFileSync(join(BUILT, 'index.html'), 'utf8');
    this.preloads = new Preloads(join(BUILT, 'manifest.json'));
    this.assets = new Map(
      readdirSync(join(BUILT, 'assets'))
        .filter((name) => !COMPRESSED.includes(extname(name)))
        .map((name) => [`/console/assets/${name}`, assetOf(join(BUILT, 'assets', name))]),
    );
  }

  /** A file of the app, or its page: the app itself shows what the path names. */
  send(request: FastifyRequest, reply: FastifyReply): void {
    const path = request.url.split('?', 1)[0]!;
    const asset = this.assets.get(path);
    if (asset) return sendAsset(asset, request, reply);
    if (path.startsWith('/console/assets/') || path.startsWith('/console/api/'))
      return sendError(new ConsoleError('not_found'), reply);
    const nonce = randomBytes(NONCE_BYTES).toString('base64');
    void reply
      .headers(securityHeaders(nonce))
      .type('text/html; charset=utf-8')
      .send(
        this.index
          .replaceAll(NONCE_PLACE, nonce)
          .replace('</head>', () => `${this.preloads.of(path, request.headers.cookie)}</head>`),
      );
  }
}

function assetOf(file: string): Asset {
  const type = TYPES[extname(file)] ?? 'application/octet-stream';
  const [brotli, gzip] = COMPRESSED.map((ending) => readFileSync(file + ending)) as [Buffer, Buffer];
  return { type, plain: readFileSync(file), gzip, brotli };
}

/** The name of an asset has a hash of its content, so browsers may keep it. */
function sendAsset({ type, plain, gzip, brotli }: Asset, request: FastifyRequest, reply: FastifyReply): void {
  const accepted = String(request.headers['accept-encoding'] ?? '');
  reply.headers({ 'cache-control': 'public, max-age=31536000, immutable', vary: 'accept-encoding' }).type(type);
  if (/\bbr\b/.test(accepted)) void reply.header('content-encoding', 'br').send(brotli);
  else if (/\bgzip\b/.test(accepted)) void reply.header('content-encoding', 'gzip').send(gzip);
  else void reply.send(plain);
}
