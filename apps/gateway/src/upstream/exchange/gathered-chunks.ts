/** A block that is longer is passed on at once. One read of a socket has 64 KiB at most. */
const MAX_BLOCK_BYTES = 256 * 1024;

/** Blocks are read during the call that passes them on, so all exchanges can share the memory. */
const shared = Buffer.allocUnsafeSlow(MAX_BLOCK_BYTES);

/**
 * The chunks of a stream that arrive in one turn of the event loop, passed on as one block at the end of that turn. A
 * fast backend sends hundreds of chunks in one read. The translation of a block and its write to the client cost a
 * fraction of those of its chunks.
 */
export class GatheredChunks {
  private chunks: Buffer[] = [];
  private bytes = 0;

  /**
   * @param pass gets each block, which is valid during the call only
   * @param fail gets what `pass` throws at the end of a turn
   */
  constructor(
    private readonly pass: (block: Buffer) => void,
    private readonly fail: (error: Error) => void,
  ) {}

  add(chunk: Buffer): void {
    this.chunks.push(chunk);
    this.bytes += chunk.length;
    if (this.bytes > MAX_BLOCK_BYTES) this.flush();
    else if (this.chunks.length === 1) queueMicrotask(() => this.endTurn());
  }

  /** Passes on what was gathered, before the end of the answer. */
  flush(): void {
    const { chunks, bytes } = this;
    if (chunks.length === 0) return;
    this.chunks = [];
    this.bytes = 0;
    this.pass(chunks.length === 1 ? chunks[0]! : joined(chunks, bytes));
  }

  /** Passes on what was gathered, and reports a failure to `fail`. */
  endTurn(): void {
    try {
      this.flush();
    } catch (error) {
      this.fail(error as Error);
    }
  }
}

function joined(chunks: readonly Buffer[], bytes: number): Buffer {
  if (bytes > shared.length) return Buffer.concat(chunks, bytes);
  let at = 0;
  for (const chunk of chunks) {
    shared.set(chunk, at);
    at += chunk.length;
  }
  return shared.subarray(0, bytes);
}
