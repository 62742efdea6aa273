import { constants } from 'node:os';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

export interface StopSignal {
  /** The first cause: the name of a signal, or the end of the launcher. Further signals are ignored. */
  reason: string;
  /** The exit code of a process that was interrupted in its work: 128 and the signal's number, as shells define it. */
  exitCode: number;
}

let wanted: Promise<StopSignal> | undefined;

/** Listens for signals from the first call on. Resolves with the first one. */
export function stopSignal(): Promise<StopSignal> {
  return (wanted ??= new Promise((resolve) => {
    for (const signal of SIGNALS)
      process.on(signal, () => resolve({ reason: signal, exitCode: 128 + constants.signals[signal] }));
    process.on('disconnect', () => resolve({ reason: 'the launcher has ended', exitCode: 1 }));
  }));
}
