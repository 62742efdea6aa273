import { wholeSteps } from './usage-export.controller';

const ms = (time: string) => Date.parse(time);
const from = ms('2026-10-01T10:30:00Z');

it.each([
  ['hour', '2026-10-02T10:30:00Z', '2026-10-02T11:00:00.000Z'],
  ['day', '2026-10-02T10:30:00Z', '2026-10-03T00:00:00.000Z'],
  ['request', '9999-12-31T23:59:59.999Z', '9999-12-31T23:59:59.999Z'],
  ['hour', '9999-12-31T23:59:59.999Z', '9999-12-31T23:00:00.000Z'],
  ['day', '9999-12-31T00:00:00.001Z', '9999-12-31T00:00:00.000Z'],
] as const)('by the %s, an export until %s ends at %s', (step, to, end) => {
  expect(new Date(wholeSteps([from, ms(to)], step)[1]).toISOString()).toBe(end);
});
