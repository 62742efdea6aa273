import cluster from 'node:cluster';
import { stopSignal } from './stop-signal';

// The first import of a program that runs in containers or has workers. The system has no default action for signals to
// process 1: a signal before the first listener is lost, and loading the program takes a second. Ctrl-C reaches workers
// too: one that still loads would end without the clean stop. From here on a signal is kept until the program runs. Any
// other process is ended at once by a signal while it loads (143).
if (process.pid === 1 || cluster.isWorker) void stopSignal();
