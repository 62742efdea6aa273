import PhaseRunner from './phase-runner.mjs';

/** One test file after the other, whatever number of workers there is, when the tests of the other runners are over. */
export default class SerialRunner extends PhaseRunner {
  isSerial = true;
}
