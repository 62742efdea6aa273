import nx from '@nx/eslint-plugin';
import tseslint from 'typescript-eslint';
import prettier from 'eslint-config-prettier';

/**
 * Which projects a project may import. Apps import libs, never each other. Only `standalone` composes apps. `contracts`
 * imports nothing.
 */
const boundaries = [
  { sourceTag: 'scope:contracts', onlyDependOnLibsWithTags: [] },
  { sourceTag: 'type:composition', onlyDependOnLibsWithTags: ['type:lib', 'type:app'] },
  { sourceTag: 'type:app', onlyDependOnLibsWithTags: ['type:lib'] },
  { sourceTag: 'type:lib', onlyDependOnLibsWithTags: ['type:lib'] },
];

/** Code that runs for each request. */
const HOT = [
  'apps/gateway/src/{activity,admit,authenticate,idempotency,inference,prompt,settle,upstream}/**/*.ts',
  'libs/{admission,credentials,postgres,redis,runtime}/src/**/*.ts',
  'libs/messaging/src/{postgres,outbox}/**/*.ts',
];
const race = {
  selector: "CallExpression[callee.object.name='Promise'][callee.property.name='race']",
  message: 'For a time limit use withTimeout or settlesWithin of @tollgate/runtime.',
};
const delays = ['node:timers/promises', 'timers/promises'].map((name) => ({
  name,
  message: 'Use delay or delayUntilAborted of @tollgate/runtime.',
}));
const oldFunction = {
  selector:
    "AssignmentExpression[left.type='MemberExpression'] > :matches(ArrowFunctionExpression, FunctionExpression)",
  message: 'V8 makes it in the old generation. Name it first: docs/performance.md, "Memory that gets old".',
};

export default tseslint.config(
  { ignores: ['**/dist/**', '**/node_modules/**', '.nx/**'] },
  ...tseslint.configs.recommended,
  ...tseslint.configs.recommendedTypeCheckedOnly.map((config) => ({ ...config, files: ['**/*.ts', '**/*.tsx'] })),
  {
    files: ['**/*.ts', '**/*.tsx'],
    plugins: { '@nx': nx },
    languageOptions: {
      parserOptions: { projectService: { allowDefaultProject: ['*.mjs'] }, tsconfigRootDir: import.meta.dirname },
    },
    rules: {
      '@nx/enforce-module-boundaries': ['error', { depConstraints: boundaries, banTransitiveDependencies: false }],
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/no-misused-promises': ['error', { checksVoidReturn: { arguments: false } }],
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_' }],
      '@typescript-eslint/consistent-type-imports': 'off',
      '@typescript-eslint/switch-exhaustiveness-check': 'error',
      'no-restricted-syntax': ['error', race],
      'no-restricted-imports': ['error', { paths: delays }],
      // An async function turns its errors into rejections, and many interfaces require a promise.
      '@typescript-eslint/require-await': 'off',
      // kafkajs and Node declare callbacks as methods, so nearly all findings are functions without `this`.
      '@typescript-eslint/unbound-method': 'off',
      // `unknown | Error` tells the reader what to expect.
      '@typescript-eslint/no-redundant-type-constituents': 'off',
      eqeqeq: ['error', 'always', { null: 'ignore' }],
    },
  },
  { files: ['libs/runtime/src/timing.ts'], rules: { 'no-restricted-imports': 'off' } },
  { files: HOT, rules: { 'no-restricted-syntax': ['error', race, oldFunction] } },
  {
    files: ['**/*.test.ts', '**/*.suite.ts', '**/*.part.ts', '**/*.fixture.ts', 'test/**', 'libs/testing/**'],
    rules: {
      // Parsed answers, rows and matchers of Jest are `any`. A wrong type fails the test itself.
      '@typescript-eslint/no-unsafe-argument': 'off',
      '@typescript-eslint/no-unsafe-assignment': 'off',
      '@typescript-eslint/no-unsafe-call': 'off',
      '@typescript-eslint/no-unsafe-member-access': 'off',
      '@typescript-eslint/no-unsafe-return': 'off',
      // Some lookups return a promise and others a value, and tests await all of them.
      '@typescript-eslint/await-thenable': 'off',
      'no-restricted-syntax': ['error', race],
      // Tests that mock time or packages need Node's own timers.
      'no-restricted-imports': 'off',
    },
  },
  prettier,
  // Prettier wraps code, but no comments.
  { rules: { 'max-len': ['error', { code: 1_000, comments: 120, ignoreUrls: true }] } },
);
