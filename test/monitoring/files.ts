import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parse } from 'yaml';

export const ROOT = resolve(__dirname, '../..');
export const MONITORING = join(ROOT, 'deploy/monitoring');

export interface Alert {
  alert: string;
  expr: string;
  labels: { severity: string };
  annotations: { summary: string; runbook: string };
}

interface Recording {
  record: string;
  expr: string;
}

/** A query of a dashboard. */
export interface PanelQuery {
  /** The file and the title of its panel. */
  name: string;
  expr: string;
}

const rulesOf = <T>(file: string): T[] =>
  (parse(readFileSync(join(MONITORING, file), 'utf8')) as { groups: { rules: T[] }[] }).groups.flatMap(
    ({ rules }) => rules,
  );

export const alerts = (): Alert[] => rulesOf('alerts.yaml');
export const recordings = (): Recording[] => rulesOf('rules.yaml');

interface Panel {
  title: string;
  targets?: { expr: string }[];
  panels?: Panel[];
}

export function panelQueries(): PanelQuery[] {
  return readdirSync(join(MONITORING, 'dashboards')).flatMap((file) => {
    const { panels } = JSON.parse(readFileSync(join(MONITORING, 'dashboards', file), 'utf8')) as { panels: Panel[] };
    return panels.flatMap(({ title, targets = [] }) =>
      targets.map(({ expr }) => ({ name: `${file}: ${title}`, expr })),
    );
  });
}

/** The names of the metrics and of the recorded series in a query. */
export function seriesIn(expr: string): string[] {
  const withoutLabels = expr.replace(/\{[^}]*\}/g, '').replace(/\b(by|without|on) \([^)]*\)/g, '');
  return [...withoutLabels.matchAll(/\b(?:tollgate|process|nodejs)[_:][\w:]+/g)].map(([name]) => name);
}

/** Without the suffixes of a histogram. */
export const metricOf = (series: string): string => series.replace(/_(bucket|sum|count)$/, '');
