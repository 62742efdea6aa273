import type { ChildProcess } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';

/** The ids of its child processes that run (Linux). */
export function childrenOf({ pid: parent }: ChildProcess): number[] {
  const parentOf = (pid: string): number => {
    try {
      return Number(readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)!.split(' ')[1]);
    } catch {
      // It has ended meanwhile.
      return 0;
    }
  };
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return pids.filter((pid) => parentOf(pid) === parent).map(Number);
}
