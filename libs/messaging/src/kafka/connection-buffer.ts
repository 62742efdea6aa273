import { createRequire } from 'node:module';

/** The parts of kafkajs's inner connection that are used here. */
interface Connection {
  chunks: Buffer[];
  bytesBuffered: number;
  bytesNeeded: number;
  isConnected(): boolean;
  connect(): Promise<unknown>;
}

/** What says how long an answer is. */
const LENGTH_BYTES = 4;
let mended = false;

/**
 * Mends a defect of kafkajs 2.2.4: a connection that breaks in the middle of an answer keeps that answer's beginning,
 * and takes what comes after it has connected again for the rest. What it then reads is nonsense, and the RangeError
 * that follows ends the process, as nobody can catch what a socket's listener throws.
 */
export function mendConnectionBuffer(): void {
  if (mended) return;
  mended = true;
  const connection = createRequire(__filename)('kafkajs/src/network/connection') as { prototype: Connection };
  const { connect } = connection.prototype;
  connection.prototype.connect = function (this: Connection): Promise<unknown> {
    if (!this.isConnected()) [this.chunks, this.bytesBuffered, this.bytesNeeded] = [[], 0, LENGTH_BYTES];
    return connect.call(this);
  };
}
