import { connect } from 'node:net';
import type { Caller, GatewayUnderTest } from '../use-gateway';

/** Far longer than a busy machine takes to read ten MiB. */
const SILENCE_MS = 20_000;

/** Less than the 75 s of an idle connection, and more than a busy machine takes. */
const ENDED_WITHIN_MS = 50_000;

/** Sends these bytes. Returns the answer, up to the end of an error envelope, the end of the socket, or silence. */
export function rawAnswer({ url }: GatewayUnderTest, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(new URL(url).port), '127.0.0.1', () => socket.write(text));
    let answer = '';
    socket.setTimeout(SILENCE_MS, () => socket.destroy());
    socket.on('data', (chunk) => {
      answer += chunk.toString();
      if (answer.trimEnd().endsWith('}}')) socket.destroy();
    });
    socket.on('close', () => resolve(answer));
    socket.on('error', reject);
  });
}

/** Asks for a stream, and resolves with the answer when the gateway ends the connection. */
export function streamUntilEnd({ url }: GatewayUnderTest, { key }: Caller, chat: object): Promise<string> {
  const body = JSON.stringify({ ...chat, stream: true });
  const head = [
    'POST /v1/chat/completions HTTP/1.1',
    'Host: x',
    `Authorization: Bearer ${key}`,
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
  ];
  return new Promise((resolve, reject) => {
    const socket = connect(Number(new URL(url).port), '127.0.0.1', () =>
      socket.write(`${head.join('\r\n')}\r\n\r\n${body}`),
    );
    let answer = '';
    socket.on('data', (chunk) => (answer += chunk.toString()));
    socket.on('end', () => resolve(answer));
    socket.on('error', reject);
    // Sooner than an idle connection ends anyway.
    setTimeout(() => reject(new Error(`not ended: ${answer}`)), ENDED_WITHIN_MS).unref();
  });
}
