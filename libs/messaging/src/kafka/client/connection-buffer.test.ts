import { createRequire } from 'node:module';
import { patchConnectionBuffer } from './connection-buffer';

it('a connection drops the beginning of an incomplete answer when it connects again', () => {
  patchConnectionBuffer();
  const Connection = createRequire(__filename)('kafkajs/src/network/connection') as new (options: object) => {
    chunks: Buffer[];
    bytesBuffered: number;
    processData(data: Buffer): void;
    connect(): Promise<unknown>;
    requestQueue: { fulfillRequest(answer: object): void };
  };
  const connection = new Connection({
    host: '127.0.0.1',
    port: 1,
    logger: { namespace: () => ({ debug() {}, error() {} }) },
    connectionTimeout: 1_000,
    socketFactory: () => {
      throw new Error('no network here');
    },
  });
  const answers: object[] = [];
  connection.requestQueue.fulfillRequest = (answer) => answers.push(answer);
  connection.processData(Buffer.from([0, 0, 0, 9, 0, 0]));
  void connection.connect().catch(() => {});
  connection.processData(Buffer.from([0, 0, 0, 5, 0, 0, 0, 7, 1]));
  expect(answers).toEqual([{ size: 5, correlationId: 7, payload: Buffer.from([1]) }]);
});
