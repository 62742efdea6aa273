// Loaded by `node --import`. The process kills itself by SIGKILL at the step KILL_AT, after SIGUSR2 or from the start.
import messaging from '@tollgate/messaging';
import runtime from '@tollgate/runtime';

const [point, of] = process.env.KILL_AT.split(' ');

// In the standalone form a service publishes in its own transaction. Here it does as with brokers.
if (/^(outbox-|publish)/.test(point)) {
  const { start } = messaging.OutboxRelay.prototype;
  messaging.OutboxRelay.prototype.start = function () {
    this.messages.transactional = undefined;
    start.call(this);
  };
}

// As while the topics cannot be written: then the messages go to the outbox.
if (point.startsWith('outbox-')) messaging.AfterCommitPublisher.prototype.isAway = () => true;

function arm() {
  runtime.armFailPoints((reached, reachedOf) => {
    if (reached === point && (of === undefined || reachedOf === of)) process.kill(process.pid, 'SIGKILL');
  });
  process.stderr.write(`armed: ${process.env.KILL_AT}\n`);
}

if (process.env.KILL_FROM_START) arm();
else process.once('SIGUSR2', arm);
