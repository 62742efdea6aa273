import { constants } from 'node:os';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

export interface StopSignal {
  /** What asked first: the name of a signal, or that the launcher is gone. Further ones are the same wish again. */
  reason: string;
  /** Of a process that is ended by it in the midst of its work: 128 and the signal's number, as a shell tells it. */
  exitCode: number;
}

let wanted: Promise<StopSignal> | undefined;

/** Heeds signals from the first call on; resolves with the first one. */
export function stopSignal(): Promise<StopSignal> {
  return (wanted ??= new Promise((resolve) => {
    for (const signal of SIGNALS)
      process.on(signal, () => resolve({ reason: signal, exitCode: 128 + constants.signals[signal] }));
    process.on('disconnect', () => resolve({ reason: 'the launcher is gone', exitCode: 1 }));
  }));
}
