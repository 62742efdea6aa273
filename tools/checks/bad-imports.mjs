// Proves that the linters enforce the import rules: puts each fixture where its import is forbidden, and expects the
// linters to report it.
import { execFileSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { node24, ROOT } from '../setup/prepare.mjs';

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
    file: 'apps/gateway/src/upstream/bad-import.ts',
    code: `import * as other from '../settle/emitter';\nexport const x = other;\n`,
    by: ['depcruise'],
    rule: /gateway-stages-are-strangers/,
  },
  {
    file: 'apps/gateway/src/prompt/bad-import.ts',
    code: `import * as other from '../admit/admit';\nexport const x = other;\n`,
    by: ['depcruise'],
    rule: /gateway-prompt-knows-bodies-only/,
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
];

const COMMANDS = {
  eslint: (file) => ['node_modules/eslint/bin/eslint.js', file],
  depcruise: (file) => [
    'node_modules/dependency-cruiser/bin/dependency-cruiser.mjs',
    file,
    '--config',
    '.dependency-cruiser.cjs',
  ],
};

let missed = 0;
for (const { file, code, by, rule } of FIXTURES) {
  const path = join(ROOT, file);
  writeFileSync(path, code);
  try {
    for (const linter of by) {
      const found = outputOfFailure(COMMANDS[linter](file));
      if (found !== null && rule.test(found)) continue;
      missed++;
      console.error(`${linter} did not refuse the import in ${file}`);
    }
  } finally {
    rmSync(path);
  }
}
if (missed > 0) process.exit(1);
console.log(`${FIXTURES.length} bad imports, all refused`);

function outputOfFailure(args) {
  try {
    execFileSync(node24(), args, { cwd: ROOT, stdio: 'pipe' });
    return null;
  } catch (error) {
    return `${error.stdout}${error.stderr}`;
  }
}
