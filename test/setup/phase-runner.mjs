import { createRequire } from 'node:module';

// Resolved from Jest, because it is a dependency of Jest.
const fromJest = createRequire(createRequire(import.meta.url).resolve('@jest/core'));
const { default: TestRunner } = fromJest('jest-runner');

/** Jest uses its runners in turn. The tests of this runner begin when those of the earlier runners have ended. */
export default class PhaseRunner extends TestRunner {}
