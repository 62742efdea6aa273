import { closeSync, fsyncSync, openSync, rmSync, writeFileSync } from 'node:fs';

/**
 * Writes a file that must not exist yet. When this returns, it is on the disk. If it fails, as on a full disk, it
 * leaves no file: an empty one would count as made at the next start. Throws the error of the file system, EEXIST if
 * the file exists.
 */
export function writeNewFile(path: string, text: string, mode: number): void {
  const opened = openSync(path, 'wx', mode);
  try {
    writeFileSync(opened, text);
    fsyncSync(opened);
  } catch (error) {
    rmSync(path);
    throw error;
  } finally {
    closeSync(opened);
  }
}
