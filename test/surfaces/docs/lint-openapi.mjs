// Lints the OpenAPI document on stdin with redocly's recommended rules, all as errors. Prints the problems as JSON.
// A process of its own, because the linter is an ES module.
import { createConfig, lintFromString } from '@redocly/openapi-core';
import { text } from 'node:stream/consumers';

const config = await createConfig({ extends: ['recommended-strict'] });
const problems = await lintFromString({ source: await text(process.stdin), config });
console.log(
  JSON.stringify(problems.map(({ ruleId, message, location }) => `${ruleId}: ${message} (${location[0]?.pointer})`)),
);
