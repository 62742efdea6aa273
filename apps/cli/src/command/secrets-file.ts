import { closeSync, fsyncSync, openSync, unlinkSync, writeSync } from 'node:fs';
import { fileProblem } from '@tollgate/runtime/file-problem';
import { Failure } from './failure';
import { printable } from './table';

/**
 * A new file that only its owner may read, for secrets that are shown only once. It is opened before any secret is
 * made. What `add` has returned for is on the disk.
 */
export class SecretsFile {
  private constructor(
    readonly path: string,
    private readonly opened: number,
  ) {}

  /** Throws Failure: the file exists, or cannot be written. */
  static open(path: string): SecretsFile {
    try {
      return new SecretsFile(path, openSync(path, 'wx', 0o600));
    } catch (error) {
      const exists = (error as NodeJS.ErrnoException).code === 'EEXIST';
      const problem = exists ? 'exists. Name a new file' : `cannot be written: ${fileProblem(error)}`;
      throw new Failure(`${printable(path)} ${problem}. Nothing was changed.`, 'file_unwritable');
    }
  }

  /** Throws the error of the file system. Then a part of the text may be in the file. */
  add(text: string): void {
    for (let rest = Buffer.from(text); rest.length > 0;) {
      const written = writeSync(this.opened, rest);
      if (written === 0) throw new Error('nothing more can be written');
      rest = rest.subarray(written);
    }
    // Some file systems find the disk full only now.
    fsyncSync(this.opened);
  }

  close(): void {
    closeSync(this.opened);
  }

  remove(): void {
    closeSync(this.opened);
    unlinkSync(this.path);
  }
}
