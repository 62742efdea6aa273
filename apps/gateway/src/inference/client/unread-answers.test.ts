import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { BodyMemory } from '../../admit/body-memory';
import { MAX_STALL_MS } from '../../upstream/stream/stream-watch';
import { Client } from './client';
import { UnreadAnswers } from './unread-answers';

/** More than the system's buffers of a connection take. */
const LONG_BYTES = 32 * 2 ** 20;
const LONG = Buffer.alloc(LONG_BYTES, 'x');
const HEAD = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';

/** The watch looks once a second, and counts from its first look. */
const LOOK_MS = 1_000;

// Real: server and sockets. The clock and the timer of the watch are the test's.
let unread: UnreadAnswers;
let memory: BodyMemory;
const OWNER = { keyId: 'key', tenantId: 'tenant', plan: 'plan' };
const sockets: Socket[] = [];
let server: Server;
let answered: (client: Client, response: ServerResponse) => void;

beforeAll(async () => {
  server = createServer((_, response) => {
    const client = new Client(response, 'mine', 'req_ours', false);
    client.unread = unread;
    client.owner = OWNER;
    answered(client, response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
});
beforeEach(() => {
  jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate', 'setTimeout'] });
  memory = new BodyMemory();
  unread = new UnreadAnswers(memory);
});
afterEach(() => {
  jest.useRealTimers();
  for (const socket of sockets.splice(0)) socket.destroy();
});
afterAll(async () => {
  server.closeAllConnections();
  server.close();
  await once(server, 'close');
});

/** A client that sends `requests` and reads nothing yet. */
function unreadingClient(requests = HEAD): Socket {
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1').pause();
  socket.on('error', () => {});
  sockets.push(socket);
  socket.write(requests);
  return socket;
}

/** The next response, once `answer` has written it. */
const next = (answer: (client: Client) => void) =>
  new Promise<ServerResponse>((resolve) => {
    answered = (client, response) => {
      answer(client);
      resolve(response);
    };
  });

describe('a client that does not read', () => {
  it.each([
    ['a plain answer', (client: Client) => client.answer(200, LONG)],
    ['the kept answer of a stream', (client: Client) => client.endStream(LONG.toString('latin1'))],
  ])('%s is disconnected after the time that a stream may stall', async (_name, answer) => {
    const answering = next(answer);
    unreadingClient();
    const response = await answering;
    const closed = once(response, 'close');
    jest.advanceTimersByTime(LOOK_MS + MAX_STALL_MS);
    expect(response.destroyed).toBe(false);
    jest.advanceTimersByTime(LOOK_MS);
    await closed;
    expect(response.writableFinished).toBe(false);
  });

  it('is disconnected too if the answer is short, but its connection takes no more', async () => {
    const answering = next((client) => {
      client.begin();
      // Fills the connection, as a stream does whose client stops reading before its end.
      client.write(LONG.toString('latin1'));
      client.endStream('data: [DONE]\n\n');
    });
    unreadingClient();
    const response = await answering;
    const closed = once(response, 'close');
    jest.advanceTimersByTime(MAX_STALL_MS + 2 * LOOK_MS);
    await closed;
  });

  it('is not disconnected while it reads, however slowly, and gets its answer', async () => {
    const answering = next((client) => client.answer(200, LONG));
    const socket = unreadingClient();
    const response = await answering;
    const closed = once(response, 'close');
    let bytes = 0;
    const read = async (upTo: number) => {
      while (bytes < upTo) {
        const chunk = socket.read() as Buffer | null;
        if (chunk) bytes += chunk.length;
        else await once(socket, 'readable');
      }
    };
    jest.advanceTimersByTime(MAX_STALL_MS);
    expect(response.destroyed).toBe(false);
    // More than the system's buffers take, so some of it was written since the last look.
    await read(LONG_BYTES / 2);
    jest.advanceTimersByTime(MAX_STALL_MS);
    expect(response.destroyed).toBe(false);
    await read(LONG_BYTES);
    await closed;
    expect(response.writableFinished).toBe(true);
  });

  it('is given time for an answer that waits for an earlier one of its connection', async () => {
    const responses: ServerResponse[] = [];
    const both = new Promise<void>((resolve) => {
      answered = (client, response) => {
        // The first request has no answer yet.
        if (responses.push(response) === 1) return;
        client.answer(200, LONG);
        resolve();
      };
    });
    unreadingClient(HEAD + HEAD);
    await both;
    jest.advanceTimersByTime(MAX_STALL_MS + 2 * LOOK_MS);
    expect(responses[1]!.destroyed).toBe(false);
    responses[0]!.end();
    await once(responses[1]!, 'drain');
    const closed = once(responses[1]!, 'close');
    jest.advanceTimersByTime(MAX_STALL_MS + 2 * LOOK_MS);
    await closed;
  });
});

describe('an unread answer', () => {
  /** The bytes of the key that are counted. */
  const counted = () => {
    const { limits } = memory.answers;
    let bytes = limits.perKey;
    while (memory.answers.fullFor(OWNER, bytes) !== null) bytes -= LONG_BYTES / 4;
    return limits.perKey - bytes;
  };

  it('counts as memory of its key from the second look on, until its last byte is read', async () => {
    const answering = next((client) => client.answer(200, LONG));
    const socket = unreadingClient();
    const response = await answering;
    jest.advanceTimersByTime(LOOK_MS);
    expect(counted()).toBe(0);
    jest.advanceTimersByTime(LOOK_MS);
    expect(counted()).toBe(LONG_BYTES);
    socket.resume();
    await once(response, 'close');
    expect(counted()).toBe(0);
  });

  it('counts no more once its client has left', async () => {
    const answering = next((client) => client.answer(200, LONG));
    const socket = unreadingClient();
    const response = await answering;
    jest.advanceTimersByTime(2 * LOOK_MS);
    expect(counted()).toBe(LONG_BYTES);
    socket.destroy();
    await once(response, 'close');
    expect(counted()).toBe(0);
  });
});

it('an answer is complete after its last byte: nothing follows it, not even the error of a stop', async () => {
  const answering = next((client) => {
    client.answer(200, LONG);
    client.cutOff();
    client.answer(200, '{}');
    client.endStream('data: [DONE]\n\n');
  });
  const socket = unreadingClient('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
  await answering;
  const chunks: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => chunks.push(chunk)).resume();
  await once(socket, 'end');
  const text = Buffer.concat(chunks);
  expect(text.subarray(text.indexOf('\r\n\r\n') + 4).equals(LONG)).toBe(true);
});

it('the answer to HEAD ends, however long its body would be', async () => {
  const answering = next((client) => client.answer(200, LONG));
  const socket = unreadingClient('HEAD / HTTP/1.1\r\nHost: x\r\n\r\n');
  const response = await answering;
  expect(response.writableEnded).toBe(true);
  const [head] = (await once(socket.resume(), 'data')) as [Buffer];
  expect(head.toString()).toContain(`content-length: ${LONG_BYTES}`);
});
