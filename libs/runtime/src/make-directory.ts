import { mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * Creates a directory, and those above it that are missing. Throws the error of the file system. Node's own `recursive`
 * never returns for a path below `/proc`, where nothing can be made: it makes the parent, which exists, and repeats.
 */
export function makeDirectory(path: string, mode = 0o777): void {
  try {
    mkdirSync(path, { mode });
  } catch (error) {
    if (isDirectory(path)) return;
    const above = dirname(path);
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || isDirectory(above)) throw error;
    makeDirectory(above, mode);
    makeDirectory(path, mode);
  }
}

function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}
