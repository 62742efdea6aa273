import { createRequire } from 'node:module';

// Jest's own, which Jest brings: resolved from there.
const fromJest = createRequire(createRequire(import.meta.url).resolve('@jest/core'));
const { default: TestRunner } = fromJest('jest-runner');

/** Jest takes its runners in turn: those of this one begin when the tests of the ones before are over. */
export default class PhaseRunner extends TestRunner {}
