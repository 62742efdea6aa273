import { randomUUID } from 'node:crypto';
import { closeSync, fsyncSync, linkSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs';

/**
 * Writes a file that must not exist yet, and that only its owner may read. When this returns, it is on the disk. Nobody
 * sees a part of it. If it fails, as on a full disk, it leaves no file: an empty one would count as written at the next
 * start. Throws the error of the file system, EEXIST if the file exists.
 */
export function writeNewFile(path: string, text: string): void {
  // Processes of two containers may have the same id.
  const draft = `${path}.${randomUUID()}`;
  const opened = openSync(draft, 'wx', 0o600);
  try {
    try {
      writeFileSync(opened, text);
      fsyncSync(opened);
    } finally {
      closeSync(opened);
    }
    publish(draft, path);
  } finally {
    rmSync(draft, { force: true });
  }
}

/** Replaces no file. A file system without hard links may replace one that another process made at this moment. */
function publish(draft: string, path: string): void {
  try {
    linkSync(draft, path);
  } catch (error) {
    if (!/^(EPERM|ENOTSUP|EOPNOTSUPP|ENOSYS)$/.test((error as NodeJS.ErrnoException).code ?? '')) throw error;
    renameSync(draft, path);
  }
}
