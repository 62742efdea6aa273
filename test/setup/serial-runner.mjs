import PhaseRunner from './phase-runner.mjs';

/** Runs one test file after the other with any number of workers, after the tests of the other runners. */
export default class SerialRunner extends PhaseRunner {
  isSerial = true;
}
