// Proves that the linters enforce the import rules: puts each fixture where its import is forbidden, and expects each
// linter to report it. Each linter runs once for all fixtures.
import { spawnSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { node24, ROOT } from '../setup/prepare.mjs';

const MAX_REPORT_BYTES = 64 * 1024 * 1024;
const FIXTURES = [
  {
    file: 'apps/auth/src/bad-import.ts',
    code: `import { BillingModule } from '../../billing/src/index';\nexport const x = BillingModule;\n`,
    by: ['eslint', 'depcruise'],
    rule: /enforce-module-boundaries|apps-are-strangers/,
  },
  {
    file: 'libs/contracts/src/bad-import.ts',
    code: `import { migrate } from '@tollgate/postgres';\nexport const x = migrate;\n`,
    by: ['eslint', 'depcruise'],
    rule: /enforce-module-boundaries|contracts-import-nothing/,
  },
  {
    file: 'apps/metering/src/bad-import.ts',
    code: `import { setTimeout } from 'node:timers/promises';\nexport const x = setTimeout;\n`,
    by: ['eslint'],
    rule: /no-restricted-imports/,
  },
  {
    file: 'apps/gateway/src/upstream/bad-import.ts',
    code: `import * as other from '../settle/emitter';\nexport const x = other;\n`,
    by: ['depcruise'],
    rule: /gateway-stages-are-strangers/,
  },
  {
    file: 'apps/gateway/src/upstream/exchange/bad-import.ts',
    code: `import { StreamRelay } from '../stream/stream-relay';\nexport const x = StreamRelay;\n`,
    by: ['depcruise'],
    rule: /gateway-upstream-is-in-layers/,
  },
  {
    file: 'apps/gateway/src/inference/report/bad-import.ts',
    code: `import type { Client } from '../client/client';\nexport const x: Client | null = null;\n`,
    by: ['depcruise'],
    rule: /gateway-inference-is-in-layers/,
  },
  {
    file: 'apps/gateway/src/prompt/bad-import.ts',
    code: `import * as other from '../admit/admit';\nexport const x = other;\n`,
    by: ['depcruise'],
    rule: /gateway-prompt-knows-bodies-only/,
  },
  {
    file: 'apps/gateway/src/body/bad-import.ts',
    code: `import { countPrompt } from '../prompt/prompt-bound';\nexport const x = countPrompt;\n`,
    by: ['depcruise'],
    rule: /gateway-bodies-know-models-only/,
  },
  {
    file: 'apps/gateway/src/operator/bad-import.ts',
    code: `import { MANAGEMENT_ERRORS } from '../management/errors';\nexport const x = MANAGEMENT_ERRORS;\n`,
    by: ['depcruise'],
    rule: /surfaces-are-strangers/,
  },
  {
    file: 'apps/gateway/src/http/bad-import.ts',
    code: `import { OPERATOR_PREFIX } from '../operator/prefix';\nexport const x = OPERATOR_PREFIX;\n`,
    by: ['depcruise'],
    rule: /http-knows-no-surface/,
  },
  {
    file: 'apps/billing/src/ledger/core/bad-import.ts',
    code: `import { DataSource } from 'typeorm';\nexport const x = DataSource;\n`,
    by: ['depcruise'],
    rule: /pure-core/,
  },
  {
    file: 'apps/auth/src/keys/bad-import.ts',
    code: `import { MessagePattern } from '@nestjs/microservices';\nexport const x = MessagePattern;\n`,
    by: ['depcruise'],
    rule: /nest-microservices-only-in-messaging/,
  },
  {
    file: 'test/gateway/bad-import.ts',
    code: `import * as other from '../../apps/gateway/src/inference/fallback';\nexport const x = other;\n`,
    by: ['depcruise'],
    rule: /tests-import-named-modules/,
  },
  {
    file: 'test/surfaces/bad-import.ts',
    code: `import { csvOf } from '../../apps/console/web/src/parts/csv';\nexport const x = csvOf;\n`,
    by: ['depcruise'],
    rule: /pages-are-tested-in-test-console/,
  },
];

const LINTERS = {
  eslint: {
    command: (files) => ['node_modules/eslint/bin/eslint.js', '--format', 'json', ...files],
    /** The broken rules: pairs of file and rule. */
    broken: (report) =>
      report.flatMap(({ filePath, messages }) => messages.map(({ ruleId }) => [relative(ROOT, filePath), ruleId])),
  },
  depcruise: {
    command: (files) => [
      'node_modules/dependency-cruiser/bin/dependency-cruiser.mjs',
      ...files,
      '--config',
      '.dependency-cruiser.cjs',
      '--output-type',
      'json',
    ],
    broken: (report) => report.summary.violations.map(({ from, rule }) => [from, rule.name]),
  },
};

let missed = 0;
try {
  for (const { file, code } of FIXTURES) writeFileSync(join(ROOT, file), code);
  for (const [linter, { command, broken }] of Object.entries(LINTERS)) {
    const fixtures = FIXTURES.filter(({ by }) => by.includes(linter));
    const found = broken(JSON.parse(output(command(fixtures.map(({ file }) => file)))));
    for (const { file, rule } of fixtures) {
      if (found.some(([from, name]) => from === file && rule.test(name))) continue;
      missed++;
      console.error(`${linter} did not refuse the import in ${file}`);
    }
  }
} finally {
  for (const { file } of FIXTURES) rmSync(join(ROOT, file), { force: true });
}
if (missed > 0) process.exit(1);
console.log(`${FIXTURES.length} bad imports, all refused`);

/** The stdout of a linter, which may fail. */
function output(args) {
  const { stdout, stderr, error } = spawnSync(node24(), args, {
    cwd: ROOT,
    encoding: 'utf8',
    maxBuffer: MAX_REPORT_BYTES,
  });
  if (error || stdout === '') throw error ?? new Error(stderr);
  return stdout;
}
