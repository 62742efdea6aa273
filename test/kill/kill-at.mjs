// Loaded beside the program (node --import): from SIGUSR2 on, or from the start, the process kills itself, as kill -9
// would, at the step that KILL_AT names.
import runtime from '@tollgate/runtime';

const [point, of] = process.env.KILL_AT.split(' ');

function arm() {
  runtime.armFailPoints((reached, reachedOf) => {
    if (reached === point && (of === undefined || reachedOf === of)) process.kill(process.pid, 'SIGKILL');
  });
  process.stderr.write(`armed: ${process.env.KILL_AT}\n`);
}

if (process.env.KILL_FROM_START) arm();
else process.once('SIGUSR2', arm);
