/** A month (`YYYY-MM`, UTC) as a range: `from` inclusive, `to` exclusive, ISO 8601. */
export function monthRange(period: string): { from: string; to: string } {
  const [year, month] = period.split('-').map(Number) as [number, number];
  const start = (of: number) => new Date(Date.UTC(year, of, 1)).toISOString();
  return { from: start(month - 1), to: start(month) };
}
