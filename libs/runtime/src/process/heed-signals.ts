import { stopSignal } from './stop-signal';

// The first import of a program that runs in containers. The system has no action of its own for signals of process 1:
// one that comes before somebody listens is lost, and loading the rest takes a second. What comes from now on is found
// when the program runs. As any other process it is ended at once by a signal while it loads (143).
if (process.pid === 1) void stopSignal();
