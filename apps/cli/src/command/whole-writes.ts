import { fstatSync, writeSync } from 'node:fs';
import type { Writable } from 'node:stream';

/**
 * Lets each write to this stream take all of its bytes or fail, if the stream is a file. A disk that fills up takes a
 * part of a write without an error, and Node's own stream of a file does not look at that.
 */
export function writeWhole(stream: Writable & { fd: number }): void {
  if (!fstatSync(stream.fd).isFile()) return;
  stream._write = (bytes: Buffer, _encoding, done) => {
    try {
      for (let at = 0; at < bytes.length;) at += writeSync(stream.fd, bytes, at);
    } catch (error) {
      return done(error as Error);
    }
    done();
  };
}
