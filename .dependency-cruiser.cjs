const importsOfTests = require('./tools/checks/imports-of-tests.cjs');

const UPSTREAM_FOLDERS = ['fleet', 'exchange', 'wire', 'count', 'stream'];
const INFERENCE_FOLDERS = ['workers', 'report', 'client', 'read', 'plain', 'serve'];

/**
 * The import rules that Nx tags cannot express: inside an app, per library, and of test/. tools/checks proves that a
 * bad import fails.
 */
module.exports = {
  forbidden: [
    { name: 'no-circular', severity: 'error', from: { pathNot: '^test/' }, to: { circular: true } },
    {
      name: 'gateway-stages-are-strangers',
      comment:
        'Stage folders of the gateway do not import each other; inference/inference.module.ts composes them. ' +
        'All may know models and prompts, but not the bodies that prompts are counted from.',
      severity: 'error',
      from: { path: '^apps/gateway/src/(activity|authenticate|admit|idempotency|upstream|settle|catalog)/' },
      to: {
        path:
          '^apps/gateway/src/' +
          '(activity|authenticate|admit|idempotency|upstream|settle|body|inference|management|operator)/',
        pathNot: '^apps/gateway/src/$1/',
      },
    },
    {
      name: 'gateway-prompt-knows-bodies-only',
      comment: 'A prompt is counted from a body that was read; the tokenizer and the estimates know no stage.',
      severity: 'error',
      from: { path: '^apps/gateway/src/prompt/' },
      to: {
        path: '^apps/gateway/src/',
        pathNot: '^apps/gateway/src/((prompt|body|catalog)/|inference-errors\\.ts$)',
      },
    },
    ...layers('upstream', UPSTREAM_FOLDERS),
    ...layers('inference', INFERENCE_FOLDERS),
    {
      name: 'gateway-bodies-know-models-only',
      comment: 'A body is read by the rules of a model. Prompts and stages use what was read, never the other way.',
      severity: 'error',
      from: { path: '^apps/gateway/src/body/' },
      to: {
        path: '^apps/gateway/src/',
        pathNot: '^apps/gateway/src/((body|catalog|http)/|inference-errors\\.ts$)',
      },
    },
    {
      name: 'surfaces-are-strangers',
      comment: 'What the inference, management and operator APIs share is in http/; no surface imports another.',
      severity: 'error',
      from: { path: '^apps/gateway/src/(inference|management|operator)/' },
      to: { path: '^apps/gateway/src/(inference|management|operator)/', pathNot: '^apps/gateway/src/$1/' },
    },
    {
      name: 'http-knows-no-surface',
      severity: 'error',
      from: { path: '^apps/gateway/src/http/' },
      to: { path: '^apps/gateway/src/', pathNot: '^apps/gateway/src/http/' },
    },
    {
      name: 'pure-core',
      comment: 'The ledger, price and money arithmetic know no framework, database or broker.',
      severity: 'error',
      from: { path: '^(apps/billing/src/ledger/core|apps/metering/src/price)/', pathNot: '\\.test\\.ts$' },
      to: { path: 'node_modules/(@nestjs|typeorm|pg|kafkajs)/' },
    },
    {
      name: 'kafkajs-only-in-messaging',
      severity: 'error',
      from: { pathNot: '^(libs/messaging|test)/' },
      to: { path: 'node_modules/kafkajs/' },
    },
    {
      name: 'nest-microservices-only-in-messaging',
      comment:
        'Patterns are typed by our tables: @tollgate/messaging/nest has the decorators, the transport and the client.',
      severity: 'error',
      from: { pathNot: '^libs/messaging/' },
      to: { path: 'node_modules/@nestjs/microservices/' },
    },
    {
      name: 'contracts-import-nothing',
      severity: 'error',
      from: { path: '^libs/contracts/', pathNot: '\\.test\\.ts$' },
      to: { pathNot: '^libs/contracts/|^node:|^(crypto|zlib)$' },
    },
    {
      name: 'apps-are-strangers',
      severity: 'error',
      from: { path: '^apps/([^/]+)/', pathNot: '^apps/standalone/' },
      to: { path: '^apps/', pathNot: '^apps/$1/' },
    },
    {
      name: 'tests-import-named-modules',
      comment:
        'A test in test/ uses packages, fixtures, types, and the modules of tools/checks/imports-of-tests.cjs. ' +
        'What tests one module alone is beside that module.',
      severity: 'error',
      from: { path: '^test/' },
      to: {
        path: '^(apps|libs)/[^/]+/src/',
        pathNot: ['^(apps|libs)/[^/]+/src/(nest/)?index\\.ts$', '\\.fixture\\.ts$', ...importsOfTests],
        dependencyTypesNot: ['type-only'],
      },
    },
    {
      name: 'pages-are-tested-in-test-console',
      severity: 'error',
      from: { path: '^test/', pathNot: '^test/console/' },
      to: { path: '^apps/console/web/', dependencyTypesNot: ['type-only'] },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    exclude: { path: '/dist/' },
    tsConfig: { fileName: 'tsconfig.depcruise.json' },
    tsPreCompilationDeps: true,
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'require', 'node', 'default', 'types'],
    },
  },
};

/** The rules that the folders of a stage import only those before them, in the order of apps/gateway/README.md. */
function layers(stage, folders) {
  return folders.slice(0, -1).map((folder, i) => ({
    name: `gateway-${stage}-is-in-layers`,
    comment: `A folder of ${stage}/ imports only those before it, in the order of apps/gateway/README.md.`,
    severity: 'error',
    from: { path: `^apps/gateway/src/${stage}/${folder}/`, pathNot: '\\.test\\.ts$' },
    to: { path: `^apps/gateway/src/${stage}/(${folders.slice(i + 1).join('|')})/` },
  }));
}
