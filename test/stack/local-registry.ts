import { createHash, randomUUID, type Hash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Larger blobs (layers) are counted and hashed, but not kept. */
const MAX_KEPT_BYTES = 1024 * 1024;

interface Upload {
  hash: Hash;
  bytes: number;
  kept: Buffer[];
}
interface Blob {
  bytes: number;
  /** Undefined if it is too large. */
  content: Buffer | undefined;
}
interface Manifest {
  type: string;
  content: Buffer;
}

export interface PushedImage {
  layers: { digest: string; size: number }[];
  config: { config: { Labels: Record<string, string> }; architecture: string };
}

/**
 * As much of a registry as a client needs to push an image and to ask for a tag (OCI distribution 1.1). It checks every
 * digest. The Docker engine takes plain HTTP from 127.0.0.1.
 */
export class LocalRegistry {
  private readonly uploads = new Map<string, Upload>();
  private readonly blobs = new Map<string, Blob>();
  private readonly manifests = new Map<string, Manifest>();
  private readonly server = createServer((request, response) => {
    this.answer(request, response).catch((error: unknown) => {
      response.writeHead(500).end(String(error));
    });
  });

  async start(): Promise<string> {
    this.server.listen(0, '127.0.0.1');
    await once(this.server, 'listening');
    return `127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }

  /** The repositories with their tags, as `name:tag`. */
  get tags(): string[] {
    return [...this.manifests.keys()].filter((key) => !key.includes('@')).sort();
  }

  /** An image whose layers have all arrived. */
  image(tag: string): PushedImage {
    const { config, layers } = JSON.parse(String(this.manifests.get(tag)!.content)) as {
      config: { digest: string };
      layers: PushedImage['layers'];
    };
    for (const { digest, size } of layers) expect([digest, this.blobs.get(digest)?.bytes]).toEqual([digest, size]);
    return { layers, config: JSON.parse(String(this.blobs.get(config.digest)!.content)) as PushedImage['config'] };
  }

  private async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url!, 'http://registry');
    const [, name, kind, reference] = /^\/v2\/(.+)\/(blobs|manifests)\/(.+)$/.exec(url.pathname) ?? [];
    if (url.pathname === '/v2/') response.writeHead(200).end();
    else if (kind === 'manifests') await this.manifest(request, response, name!, reference!);
    else if (kind === 'blobs' && reference!.startsWith('sha256:')) this.blob(request, response, reference!);
    else if (url.pathname.includes('/blobs/uploads/')) await this.upload(request, response, url);
    else response.writeHead(404).end();
  }

  private blob(request: IncomingMessage, response: ServerResponse, digest: string): void {
    const blob = this.blobs.get(digest);
    if (!blob || (request.method === 'GET' && !blob.content)) return void response.writeHead(404).end();
    response.writeHead(200, { 'content-length': blob.bytes, 'docker-content-digest': digest });
    response.end(request.method === 'GET' ? blob.content : undefined);
  }

  private async upload(request: IncomingMessage, response: ServerResponse, url: URL): Promise<void> {
    if (request.method === 'POST') {
      const location = `${url.pathname.replace(/\/$/, '')}/${randomUUID()}`;
      this.uploads.set(location, { hash: createHash('sha256'), bytes: 0, kept: [] });
      return void response.writeHead(202, { location, range: '0-0' }).end();
    }
    const upload = this.uploads.get(url.pathname);
    if (!upload) return void response.writeHead(404).end();
    for await (const chunk of request as AsyncIterable<Buffer>) {
      upload.hash.update(chunk);
      upload.bytes += chunk.length;
      if (upload.bytes <= MAX_KEPT_BYTES) upload.kept.push(chunk);
    }
    if (request.method === 'PATCH') {
      response.writeHead(202, { location: url.pathname, range: `0-${upload.bytes - 1}` });
      return void response.end();
    }
    const digest = `sha256:${upload.hash.digest('hex')}`;
    if (digest !== url.searchParams.get('digest')) return void response.writeHead(400).end('another digest');
    this.uploads.delete(url.pathname);
    const content = upload.bytes <= MAX_KEPT_BYTES ? Buffer.concat(upload.kept) : undefined;
    this.blobs.set(digest, { bytes: upload.bytes, content });
    response.writeHead(201, { location: url.pathname, 'docker-content-digest': digest }).end();
  }

  private async manifest(
    request: IncomingMessage,
    response: ServerResponse,
    name: string,
    reference: string,
  ): Promise<void> {
    const keyOf = (of: string) => (of.startsWith('sha256:') ? `${name}@${of}` : `${name}:${of}`);
    const digestOf = (content: Buffer) => `sha256:${createHash('sha256').update(content).digest('hex')}`;
    if (request.method === 'PUT') {
      const chunks: Buffer[] = [];
      for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
      const content = Buffer.concat(chunks);
      const digest = digestOf(content);
      const manifest = { type: request.headers['content-type']!, content };
      for (const name of [reference, digest]) this.manifests.set(keyOf(name), manifest);
      return void response.writeHead(201, { 'docker-content-digest': digest }).end();
    }
    const found = this.manifests.get(keyOf(reference));
    if (!found) return void response.writeHead(404).end();
    response.writeHead(200, {
      'content-type': found.type,
      'content-length': found.content.length,
      'docker-content-digest': digestOf(found.content),
    });
    response.end(request.method === 'HEAD' ? undefined : found.content);
  }
}
