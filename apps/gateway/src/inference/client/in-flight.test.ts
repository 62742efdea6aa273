import { configureLogging } from '@tollgate/runtime';
import { InFlight, type Running } from './in-flight';

configureLogging({ level: 'silent', pretty: false });

it('cuts off every request, even if one fails to end', async () => {
  const inFlight = new InFlight();
  const failing: Running = {
    cutOff: () => {
      throw new Error('cannot end');
    },
  };
  const ending: Running = { cutOff: () => inFlight.end(ending) };
  for (const request of [failing, ending]) inFlight.begin(request);
  const drained = inFlight.cutOff(60_000);
  expect(inFlight.count).toBe(1);
  inFlight.end(failing);
  expect(await drained).toBe(true);
});
