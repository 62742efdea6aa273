import { TakeDown } from './take-down';

it('an end takes started parts down in reverse order, once, and continues after a step that fails', async () => {
  const done: string[] = [];
  const takeDown = new TakeDown('test');
  takeDown.add(() => done.push('first'));
  takeDown.add(
    () => Promise.reject(new Error('a step that fails')),
    async () => {
      await new Promise((resolve) => setImmediate(resolve));
      done.push('last');
    },
  );
  await Promise.all([takeDown.run(), takeDown.run()]);
  expect(done).toEqual(['last', 'first']);
});
