import { Tries } from './tries';

it('the 21st try of an address in a minute is refused, with the time to wait, and others are not', () => {
  const tries = new Tries();
  for (let i = 0; i < 20; i++) tries.take('10.0.0.1');
  let refused: unknown;
  try {
    tries.take('10.0.0.1');
  } catch (error) {
    refused = error;
  }
  expect(refused).toMatchObject({ code: 'rate_limited', headers: { 'retry-after': expect.stringMatching(/^\d+$/) } });
  expect(() => tries.take('10.0.0.2')).not.toThrow();
});

it('the addresses of one IPv6 /64 are one address, because their owner has all of them', () => {
  const tries = new Tries();
  for (let i = 0; i < 20; i++) tries.take(`2001:db8:1:2::${i}`);
  expect(() => tries.take('2001:db8:1:2:a:b:c:d')).toThrow(expect.objectContaining({ code: 'rate_limited' }));
  expect(() => tries.take('2001:db8:1:3::1')).not.toThrow();
});

it('a try that is given back does not count, and one that was refused adds nothing', () => {
  const tries = new Tries(2, 60_000, 'Wait.');
  for (let i = 0; i < 2; i++) tries.take('ada');
  for (let i = 0; i < 3; i++) expect(() => tries.take('ada')).toThrow('Wait.');
  tries.giveBack('ada');
  tries.take('ada');
  expect(() => tries.take('ada')).toThrow('Wait.');
});

it('tries that are given back push out no count, however many callers make them', () => {
  const tries = new Tries(1, 60_000, 'Wait.');
  tries.take('ada');
  for (let i = 0; i < 20_000; i++) {
    tries.take(`caller ${i}`);
    tries.giveBack(`caller ${i}`);
  }
  expect(() => tries.take('ada')).toThrow('Wait.');
});
