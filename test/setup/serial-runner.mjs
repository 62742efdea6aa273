import { createRequire } from 'node:module';

// Jest's own, which Jest brings: resolved from there.
const fromJest = createRequire(createRequire(import.meta.url).resolve('@jest/core'));
const { default: TestRunner } = fromJest('jest-runner');

/** Runs one test file after the other with any number of workers, after the tests of the other runners. */
export default class SerialRunner extends TestRunner {
  isSerial = true;
}
