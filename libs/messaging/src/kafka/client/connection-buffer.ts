import { createRequire } from 'node:module';

/** The parts of kafkajs's inner connection that are used here. */
interface Connection {
  chunks: Buffer[];
  bytesBuffered: number;
  bytesNeeded: number;
  isConnected(): boolean;
  connect(): Promise<unknown>;
}

/** The bytes that give the length of an answer. */
const LENGTH_BYTES = 4;
let patched = false;

/**
 * Works around a defect of kafkajs 2.2.4. A connection that breaks in the middle of an answer keeps the answer's
 * beginning, and takes the data after the reconnection for its end. The garbage then causes a RangeError in a socket
 * listener, which cannot be caught and ends the process.
 */
export function patchConnectionBuffer(): void {
  if (patched) return;
  patched = true;
  const connection = createRequire(__filename)('kafkajs/src/network/connection') as { prototype: Connection };
  const { connect } = connection.prototype;
  connection.prototype.connect = function (this: Connection): Promise<unknown> {
    if (!this.isConnected()) [this.chunks, this.bytesBuffered, this.bytesNeeded] = [[], 0, LENGTH_BYTES];
    return connect.call(this);
  };
}
