import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ComposedDeployment } from '../../e2e/composed';
import { describeRound, type PlannedRound } from './plan';
import type { RoundResult } from './round';

const PARTS = ['gateway', 'auth', 'metering', 'billing', 'redis', 'kafka', 'postgres', 'haproxy', 'simulator'];

/** The whole plan. */
export function planText(rounds: readonly PlannedRound[]): string {
  return rounds.map((round) => `  ${String(round.number).padStart(3)}  ${describeRound(round)}`).join('\n');
}

/** The lines of one round, with a line for each finding. */
export function roundText(result: RoundResult): string {
  const { planned, findings, requests, whole, lacking, failures, operations, waits, machine, trial } = result;
  const facts = [
    `${requests} requests, ${whole} complete${lacking > 0 ? ` (${lacking} lost as documented)` : ''}`,
    `${operations} credit operations`,
    `waits p50 ${seconds(waits.p50Ms)} max ${seconds(waits.maxMs)} (${seconds(waits.rawMaxMs)} by the clock)`,
    ...(trial ? [`recovered ${seconds(trial.recoveryMs)}, settled ${seconds(trial.settledMs)}`] : []),
    `5 ms of work took ${Math.round(machine.meanMs)} ms, at most ${seconds(machine.maxMs)}`,
    ...(failures ? [failures] : []),
  ];
  const verdict = findings.length === 0 ? 'ok' : 'WRONG';
  const lines = findings.map((finding) => `    ! ${finding}`);
  return [
    `  ${String(planned.number).padStart(3)}  ${verdict}  ${describeRound(planned)}`,
    `       ${facts.join('; ')}`,
    ...lines,
  ].join('\n');
}

export function summaryText(results: readonly RoundResult[]): string {
  const wrong = results.filter(({ findings }) => findings.length > 0);
  const sum = (of: (result: RoundResult) => number) => results.reduce((total, result) => total + of(result), 0);
  const rows = results.map(({ planned, requests, whole, waits, trial, findings }) => [
    String(planned.number),
    findings.length === 0 ? 'ok' : `${findings.length} WRONG`,
    String(requests),
    String(whole),
    seconds(waits.p50Ms),
    seconds(waits.maxMs),
    trial ? seconds(trial.recoveryMs) : '–',
    trial ? seconds(trial.settledMs) : '–',
    describeRound(planned),
  ]);
  const head = ['round', 'verdict', 'requests', 'complete', 'wait p50', 'wait max', 'recovered', 'settled', 'faults'];
  return [
    table([head, ...rows]),
    `${results.length} rounds, ${sum(({ requests }) => requests)} requests, ` +
      `${sum(({ whole }) => whole)} complete answers, ${sum(({ operations }) => operations)} credit operations; ` +
      `${wrong.length} rounds went wrong.`,
    ...wrong.flatMap(({ planned, findings }) => findings.map((finding) => `round ${planned.number}: ${finding}`)),
  ].join('\n');
}

/** Writes the logs of all containers since the round began, and the outcomes of the clients. Returns the folder. */
export async function keepEvidence(tollgate: ComposedDeployment, folder: string, result: RoundResult): Promise<string> {
  const own = join(folder, `round-${result.planned.number}`);
  mkdirSync(own, { recursive: true });
  const { planned, begunAt, findings, outcomes } = result;
  writeFileSync(join(own, 'round.json'), `${JSON.stringify({ planned, begunAt, findings }, null, 2)}\n`);
  writeFileSync(join(own, 'outcomes.jsonl'), outcomes.map((outcome) => `${JSON.stringify(outcome)}\n`).join(''));
  for (const part of PARTS) {
    const since = new Date(begunAt.getTime() - 5_000).toISOString();
    const log = await tollgate.compose('logs', '--no-color', '--timestamps', '--since', since, part).catch(String);
    writeFileSync(join(own, `${part}.log`), log);
  }
  return own;
}

function table(rows: readonly string[][]): string {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column]!))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

const seconds = (ms: number) => `${(ms / 1_000).toFixed(1)} s`;
