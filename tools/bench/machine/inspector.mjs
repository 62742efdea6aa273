// Asks a running Node process, by its inspector, what it remembers once its garbage is collected. The inspector is
// opened by a signal, so that it costs nothing before.
import { answered } from './processes.mjs';

/** For the command line of such a process: its inspector takes any free port. */
export const INSPECTABLE = '--inspect-port=0';

const ANSWER_TIMEOUT_MS = 30_000;
const ADDRESS = /Debugger listening on (ws:\S+)/;

/**
 * @param {import('./processes.mjs').Running} running
 * @returns {() => Promise<{ rss: number, live: number }>}  in bytes; `live` is the heap and what belongs to its objects
 */
export function collector(running) {
  let address;
  return async () => {
    if (address === undefined) process.kill(running.pid, 'SIGUSR1');
    address ??= await answered(() => addressIn(running.stderr()), { timeoutMs: ANSWER_TIMEOUT_MS, running });
    const socket = new WebSocket(address);
    try {
      await opened(socket);
      // The second collects the memory that finalizers of the first free.
      await ask(socket, 1, 'HeapProfiler.collectGarbage');
      await ask(socket, 2, 'HeapProfiler.collectGarbage');
      const expression = 'JSON.stringify(process.memoryUsage())';
      const { result } = await ask(socket, 3, 'Runtime.evaluate', { expression });
      const { rss, heapUsed, external } = JSON.parse(result.value);
      return { rss, live: heapUsed + external };
    } finally {
      socket.close();
    }
  };
}

function addressIn(text) {
  const [, address] = ADDRESS.exec(text) ?? [];
  if (address === undefined) throw new Error('the inspector has not opened');
  return address;
}

const opened = (socket) =>
  new Promise((resolve, reject) => {
    socket.addEventListener('open', resolve, { once: true });
    socket.addEventListener('error', () => reject(new Error('the inspector cannot be reached')), { once: true });
  });

function ask(socket, id, method, params = {}) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`the inspector does not answer ${method}`)), ANSWER_TIMEOUT_MS);
    socket.addEventListener('message', function heard({ data }) {
      const answer = JSON.parse(data);
      if (answer.id !== id) return;
      socket.removeEventListener('message', heard);
      clearTimeout(timer);
      if (answer.error) reject(new Error(`${method}: ${answer.error.message}`));
      else resolve(answer.result);
    });
    socket.send(JSON.stringify({ id, method, params }));
  });
}
