import { MAX_NAMED_DIFFERENCES, type Difference } from '@tollgate/contracts';
import { Findings } from './findings';

const some = (count: number): Difference[] =>
  Array.from({ length: count }, () => ({ check: 'c', tenantId: 't', expected: '1', actual: '2', ids: [] }));

describe('the report of a run', () => {
  it('names all differences, and does not claim more', () => {
    const findings = new Findings();
    findings.add(some(MAX_NAMED_DIFFERENCES));
    const report = findings.report();
    expect([report.ok, report.differenceCount, report.truncated]).toEqual([false, MAX_NAMED_DIFFERENCES, undefined]);
  });
  it('says that there are more than it names', () => {
    const findings = new Findings();
    findings.add(some(MAX_NAMED_DIFFERENCES));
    findings.add(some(1));
    const { differenceCount, differences, truncated } = findings.report();
    expect([differenceCount, differences.length, truncated]).toEqual([1_001, 1_000, true]);
  });
  it('says that there are more than a check has named', () => {
    const findings = new Findings();
    findings.add(some(3), true);
    findings.add(some(1));
    expect(findings.report()).toMatchObject({ differenceCount: 4, truncated: true });
  });
});
