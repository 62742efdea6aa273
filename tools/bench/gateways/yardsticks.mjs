// What Tollgate is compared with: a direct call, a bare Node proxy, nginx where it is installed, and peers.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { answered, freePort, MEASURED, start, startNode } from '../machine/processes.mjs';
import { atEnd } from '../machine/take-down.mjs';
import { listenersOn } from '../machine/usage.mjs';

const NGINX_TIMEOUT_MS = 10_000;

/**
 * @typedef {{ name: string, url: string, headers?: Record<string, string>, parts: Record<string, number[]>,
 *   stop?: () => Promise<void> }} Gateway  `parts`: processes whose CPU is told apart, with their descendants
 */

/** @returns {Gateway} */
export const direct = (backend) => ({ name: 'direct', url: backend.url, parts: {} });

/** Node, undici, and nothing else. @returns {Promise<Gateway>} */
export async function startBareProxy(backend) {
  const running = startNode(MEASURED, [join(import.meta.dirname, 'bare-proxy.mjs'), new URL(backend.url).origin]);
  const { url } = JSON.parse(await running.firstLine);
  return { name: 'bare proxy', url, parts: { gateway: [running.pid] }, stop: running.stop };
}

/** nginx with `proxy_pass`, one worker; null where it is not installed. @returns {Promise<Gateway | null>} */
export async function startNginx(backend) {
  if (spawnSync('nginx', ['-v']).status !== 0) return null;
  const home = mkdtempSync(join(tmpdir(), 'tollgate-bench-nginx-'));
  atEnd(async () => rmSync(home, { recursive: true, force: true }));
  const port = await freePort();
  writeFileSync(
    join(home, 'nginx.conf'),
    `worker_processes 1; pid ${home}/nginx.pid; daemon off; error_log ${home}/error.log;
     events { worker_connections 4096; }
     http { access_log off; client_body_temp_path ${home}; proxy_temp_path ${home}; fastcgi_temp_path ${home};
       uwsgi_temp_path ${home}; scgi_temp_path ${home}; keepalive_requests 1000000;
       upstream model { server ${new URL(backend.url).host}; keepalive 256; keepalive_requests 1000000; }
       server { listen 127.0.0.1:${port};
         location / { proxy_pass http://model; proxy_http_version 1.1; proxy_set_header Connection "";
           proxy_buffering off; } } }`,
  );
  const running = start(MEASURED, 'nginx', ['-p', home, '-c', join(home, 'nginx.conf')]);
  const url = `http://127.0.0.1:${port}/v1`;
  await answered(() => fetch(url), { timeoutMs: NGINX_TIMEOUT_MS, running });
  return {
    name: 'nginx',
    url,
    parts: { gateway: [running.pid] },
    stop: running.stop,
  };
}

/**
 * Any gateway that speaks OpenAI's API, which whoever measures has started: its backend is the bench's. What it costs
 * is known where it listens on this machine. @returns {Gateway}
 */
export function peer({ url, key }) {
  const { host, port, protocol } = new URL(url);
  const pids = listenersOn(Number(port || (protocol === 'https:' ? 443 : 80)));
  return {
    name: host,
    url: url.replace(/\/$/, ''),
    headers: { authorization: `Bearer ${key}` },
    parts: pids.length > 0 ? { gateway: pids } : {},
  };
}
