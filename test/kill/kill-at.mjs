// Loaded by `node --import`. The process kills itself by SIGKILL at the step KILL_AT, after SIGUSR2 or from the start.
import messaging from '@tollgate/messaging';
import runtime from '@tollgate/runtime';

const [point, of] = process.env.KILL_AT.split(' ');

// In the standalone form a service publishes in its own transaction. Here it uses its outbox, as with brokers.
if (point.startsWith('outbox-')) {
  const { start } = messaging.OutboxRelay.prototype;
  messaging.OutboxRelay.prototype.start = function () {
    this.messages.transactional = undefined;
    start.call(this);
  };
}

function arm() {
  runtime.armFailPoints((reached, reachedOf) => {
    if (reached === point && (of === undefined || reachedOf === of)) process.kill(process.pid, 'SIGKILL');
  });
  process.stderr.write(`armed: ${process.env.KILL_AT}\n`);
}

if (process.env.KILL_FROM_START) arm();
else process.once('SIGUSR2', arm);
