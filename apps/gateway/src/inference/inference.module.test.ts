import { InferenceModule } from './inference.module';

it('the shutdown ends calls of backends before it flushes usage, and closes the admission client last', async () => {
  const steps: string[] = [];
  const step = (name: string) => async (): Promise<void> => {
    steps.push(`${name} begins`);
    await new Promise(setImmediate);
    steps.push(`${name} ends`);
  };
  const stages = [
    { close: step('closing backends') },
    { close: step('closing bodies') },
    { close: step('closing answers') },
    { stop: () => void steps.push('streams stop') },
    { flush: step('flushing usage') },
    { close: step('closing admission') },
  ] as unknown as ConstructorParameters<typeof InferenceModule>;
  await new InferenceModule(...stages).onApplicationShutdown();
  expect(steps).toEqual([
    'closing backends begins',
    'closing bodies begins',
    'closing answers begins',
    'closing backends ends',
    'closing bodies ends',
    'closing answers ends',
    'streams stop',
    'flushing usage begins',
    'flushing usage ends',
    'closing admission begins',
    'closing admission ends',
  ]);
});
