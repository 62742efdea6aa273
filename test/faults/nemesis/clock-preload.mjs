// Loaded before a service by the tests (NODE_OPTIONS, ../clocks.yml). Shifts its `Date` by the milliseconds in the file
// /clock/<name of its host>. Timers and the monotonic clock are unchanged, as when the clock of a machine is set.
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';

const LOOK_INTERVAL_MS = 50;
const file = `/clock/${hostname()}`;
const RealDate = Date;
let offsetMs = 0;

function look() {
  try {
    offsetMs = Number(readFileSync(file, 'utf8'));
  } catch {
    offsetMs = 0;
  }
}

const now = () => RealDate.now() + offsetMs;

function ShiftedDate(...args) {
  if (!new.target) return new RealDate(now()).toString();
  return Reflect.construct(
    RealDate,
    args.length > 0 ? args : [now()],
    new.target === ShiftedDate ? RealDate : new.target,
  );
}
ShiftedDate.prototype = RealDate.prototype;
ShiftedDate.prototype.constructor = ShiftedDate;
ShiftedDate.now = now;
ShiftedDate.parse = RealDate.parse;
ShiftedDate.UTC = RealDate.UTC;
globalThis.Date = ShiftedDate;

look();
setInterval(look, LOOK_INTERVAL_MS).unref();
