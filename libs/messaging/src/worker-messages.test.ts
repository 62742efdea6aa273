import { Channel, type Peer } from '@tollgate/runtime';
import { useTestDatabase } from '@tollgate/testing';
import { EventEmitter } from 'node:events';
import type { Messages } from './messages';
import { PostgresStore } from './postgres/test-store.fixture';
import { requestsSuite } from './requests.suite';
import { answerWorkers, WorkerMessages } from './worker-messages';

const database = useTestDatabase();

/** The first instance is the primary process. All others are its workers. */
async function createStore() {
  const store = new PostgresStore(database);
  let primary: Messages | undefined;
  return {
    open(): Messages {
      const opened = store.open();
      if (!primary) return (primary = opened);
      const [atPrimary, atWorker] = connectedPeers();
      new Channel(atPrimary, { request: answerWorkers(primary) });
      return new WorkerMessages(opened, new Channel(atWorker, {}));
    },
    close: () => store.close(),
  };
}

/** Both ends of a connection like Node's IPC: it copies what it carries as JSON. */
function connectedPeers(): [Peer, Peer] {
  const ends = [new EventEmitter(), new EventEmitter()] as const;
  const peer = (own: EventEmitter, other: EventEmitter): Peer => ({
    on: (event, listener) => own.on(event, listener),
    send: (message) => setImmediate(() => other.emit('message', JSON.parse(JSON.stringify(message)))),
  });
  return [peer(ends[0], ends[1]), peer(ends[1], ends[0])];
}

requestsSuite('a worker', 'other-instances', createStore);
