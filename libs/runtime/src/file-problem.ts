const WORDS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file or directory',
  EEXIST: 'it exists',
  EACCES: 'its permissions do not allow it',
  EPERM: 'the system does not allow it',
  EISDIR: 'it is a directory',
  ENOTDIR: 'a part of its path is not a directory',
  EROFS: 'the file system is read-only',
  ENOSPC: 'the disk is full',
  EDQUOT: 'the disk quota is used up',
  EFBIG: 'the file would be larger than allowed',
};

/** Why a file cannot be read or written, for people. An unusual error is named by its code. */
export function fileProblem(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return code === undefined ? message : (WORDS[code] ?? code);
}
