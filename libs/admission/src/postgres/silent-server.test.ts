import { type AddressInfo, createServer, type Socket } from 'node:net';
import { once } from 'node:events';
import { Connections } from './connections';

const CALL_TIMEOUT_MS = 50;
const CALL = { name: 'call', text: 'SELECT 1', values: [] };
/** AuthenticationOk and ReadyForQuery. */
const WELCOME = Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 0, 0x5a, 0, 0, 0, 5, 0x49]);

const sockets: Socket[] = [];
/** A server that accepts connections and then says nothing. */
const server = createServer((socket) => {
  sockets.push(socket);
  socket.on('error', () => {});
  socket.once('data', () => socket.write(WELCOME));
  socket.resume();
});
let connections: Connections;

beforeAll(async () => {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  connections = new Connections(`postgres://tollgate@127.0.0.1:${port}/tollgate`, CALL_TIMEOUT_MS);
});
afterAll(() => {
  for (const socket of sockets) socket.destroy();
  server.close();
});

it.each(['call', 'callDurably', 'callDurablyIfAny'] as const)(
  '%s gives up on a silent server and closes its connection',
  async (kind) => {
    const from = sockets.length;
    await expect(connections[kind](CALL)).rejects.toThrow('the admission store does not answer (call)');
    const [socket] = sockets.slice(from);
    if (!socket!.closed) await once(socket!, 'close');
  },
);

it('the end of the connections waits for no answer that is missing', async () => {
  const connected = once(server, 'connection');
  const calling = connections.callDurably(CALL).catch((error: Error) => error.message);
  await connected;
  await connections.close();
  expect(await calling).toBe('the admission store does not answer (call)');
});
