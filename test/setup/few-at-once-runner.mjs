import { createRequire } from 'node:module';

// Jest's own, which Jest brings: resolved from there.
const fromJest = createRequire(createRequire(import.meta.url).resolve('@jest/core'));
const { default: TestRunner } = fromJest('jest-runner');

/** Runs at most `atOnce` test files at once with any number of workers, apart from the tests of the other runners. */
export default class FewAtOnceRunner extends TestRunner {
  constructor(globalConfig, context, { atOnce }) {
    super({ ...globalConfig, maxWorkers: Math.min(atOnce, globalConfig.maxWorkers) }, context);
  }
}
