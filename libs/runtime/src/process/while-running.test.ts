import { WhileRunning, whileRunning } from './while-running';

class Pump {
  readonly did: string[] = [];
}

it('starts with the application, and the stop waits for its end', async () => {
  const pump = new Pump();
  const { inject, useFactory } = whileRunning([Pump], (given: Pump) => {
    given.did.push('started');
    return async () => {
      await Promise.resolve();
      given.did.push('stopped');
    };
  });
  expect(inject).toEqual([Pump]);
  const running = useFactory(pump);
  expect(pump.did).toEqual([]);
  running.onApplicationBootstrap();
  expect(pump.did).toEqual(['started']);
  await running.beforeApplicationShutdown();
  expect(pump.did).toEqual(['started', 'stopped']);
});

it('an application that never started has nothing to stop', async () => {
  const start = jest.fn();
  await new WhileRunning(start).beforeApplicationShutdown();
  expect(start).not.toHaveBeenCalled();
});
