import { STOP_ORDER, TakeDown } from './take-down';

it('an end takes started parts down in reverse order, once, and continues after a step that fails', async () => {
  const done: string[] = [];
  const takeDown = new TakeDown('test');
  takeDown.add('connections', () => done.push('first'));
  takeDown.add(
    'connections',
    () => Promise.reject(new Error('a step that fails')),
    async () => {
      await new Promise((resolve) => setImmediate(resolve));
      done.push('last');
    },
  );
  await Promise.all([takeDown.run(), takeDown.run()]);
  expect(done).toEqual(['last', 'first']);
});

it('the phases of an end follow in their order, in whichever order the parts have started', async () => {
  const done: string[] = [];
  const takeDown = new TakeDown('test');
  for (const phase of STOP_ORDER) takeDown.add(phase, () => done.push(phase));
  await takeDown.run();
  expect(done).toEqual(STOP_ORDER);
});

it('an end takes a part down that started meanwhile', async () => {
  const done: string[] = [];
  const takeDown = new TakeDown('test');
  takeDown.add('basics', () => done.push('basics'));
  takeDown.add('connections', () => takeDown.add('applications', () => done.push('started meanwhile')));
  await takeDown.run();
  expect(done).toEqual(['started meanwhile', 'basics']);
});
