import type { Demo } from './demo';

/** The web console, where it runs. */
export interface ConsoleAddress {
  url: string;
  /** Makes the first operator, once, within ten minutes. Null if there is an operator. */
  firstOperatorLink: string | null;
}

export interface Addresses {
  /** Ends in /v1. */
  inferenceUrl: string;
  /** Ends in /_api/v1. */
  managementUrl: string;
  operatorUrl: string;
  docsUrl: string;
  console?: ConsoleAddress | undefined;
  operatorSecret: string;
}

/** One line of JSON, for scripts. */
export function readyJson(addresses: Addresses, demo: Demo | null): string {
  return JSON.stringify({ ...addresses, ...(demo ? { demo } : {}) });
}

/** The text for people when the service is ready. The curl line asks `model`. `stop` says how to stop the service. */
export function readyText(addresses: Addresses, demo: Demo | null, model: string, stop: string): string {
  const lines = [
    '',
    'Tollgate is ready.',
    `  Inference API   ${addresses.inferenceUrl}`,
    `  Management API  ${addresses.managementUrl}`,
    `  Operator API    ${addresses.operatorUrl}`,
    `  Docs            ${addresses.docsUrl}`,
  ];
  if (addresses.console) lines.push(`  Console         ${addresses.console.url}`);
  if (addresses.console?.firstOperatorLink)
    lines.push(
      '',
      'The console has no operator yet. This link makes the first one. It works once, for ten minutes:',
      `  ${addresses.console.firstOperatorLink}`,
    );
  if (demo) {
    lines.push(
      '',
      `A demo tenant, ${demo.tenantId}, with 10.00 of credit. Its key and token are shown only once:`,
      `  Inference key     ${demo.key}`,
      `  Management token  ${demo.token}`,
      '',
      'Try:',
      `  curl ${addresses.inferenceUrl}/chat/completions -H 'Authorization: Bearer ${demo.key}' -H ` +
        `'Content-Type: application/json' -d '{"model":"${model}","messages":[{"role":"user","content":"Hello"}]}'`,
      `  curl ${addresses.managementUrl}/usage -H 'Authorization: Bearer ${demo.token}'`,
    );
  } else {
    lines.push('', 'Tenants, credit, keys: npx tollgate --help');
  }
  lines.push('', stop, '');
  return lines.join('\n');
}
