// The proxy to compare with: node:http and undici dispatch, forwarding bytes and nothing else.
// Usage: bare-proxy.mjs <upstream origin>
import { createServer } from 'node:http';
import { Pool } from 'undici';

const pool = new Pool(process.argv[2], { connections: 1024, pipelining: 1 });

createServer((request, response) => {
  const chunks = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('end', () => {
    let stop = null;
    response.on('close', () => stop?.());
    pool.dispatch(
      {
        method: request.method,
        path: request.url,
        headers: { 'content-type': 'application/json' },
        body: chunks.length ? Buffer.concat(chunks) : null,
      },
      {
        onRequestStart(controller) {
          stop = () => response.writableFinished || controller.abort(new Error('client left'));
          response.on('drain', () => controller.resume());
        },
        onResponseStart(_controller, status, headers) {
          delete headers['transfer-encoding'];
          delete headers.connection;
          response.writeHead(status, headers);
        },
        onResponseData(controller, chunk) {
          if (!response.write(chunk)) controller.pause();
        },
        onResponseEnd() {
          response.end();
        },
        onResponseError() {
          if (response.headersSent) response.destroy();
          else response.writeHead(502).end();
        },
      },
    );
  });
}).listen(0, '127.0.0.1', function () {
  console.log(JSON.stringify({ url: `http://127.0.0.1:${this.address().port}/v1` }));
});
