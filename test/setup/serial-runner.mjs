import { createRequire } from 'node:module';

// Jest's own, which Jest brings: resolved from there.
const fromJest = createRequire(createRequire(import.meta.url).resolve('@jest/core'));
const { default: TestRunner } = fromJest('jest-runner');

/**
 * One test file after the other, whatever number of workers there is; Jest takes its runners in turn, so also after the
 * tests of the others.
 */
export default class SerialRunner extends TestRunner {
  isSerial = true;
}
