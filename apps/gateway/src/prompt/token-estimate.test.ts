import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { countTokens } from './tokenizer';
import { estimateTokens } from './token-estimate';

const file = (...path: string[]) => readFileSync(join(__dirname, '../../../..', ...path), 'utf8');

describe('the estimate of tokens', () => {
  it.each([
    ['English', file('CONTRIBUTING.md')],
    ['code', file('apps/gateway/src/upstream/exchange/exchange.ts')],
    ['SQL', file('libs/admission/src/postgres/functions/end_holds.sql')],
    ['JSON', file('package.json')],
    ['numbers', Array.from({ length: 500 }, (_, i) => (i * 7919) % 100_000).join(' ')],
    [
      'German',
      'Seitdem fahren die Schiffe täglich zwischen Wien und Passau, und viele Menschen genießen die Aussicht. ',
    ],
    ['French', 'L’été dernier, nous avons visité la cathédrale où les élèves étudiaient l’histoire de l’art. '],
    ['Russian', 'Вчера мы ходили в большой театр и смотрели новый балет, который поставил известный хореограф. '],
    ['Chinese', '昨天我们去了北京的国家大剧院，观看了一场由著名编舞家创作的新芭蕾舞剧。'],
    ['Japanese', '昨日、私たちは東京の国立劇場に行き、有名な振付家による新しいバレエを鑑賞しました。'],
    ['Korean', '어제 우리는 서울에 있는 국립극장에 가서 유명한 안무가의 새로운 발레 공연을 관람했습니다. '],
  ])('is within 1.4 times of the count: %s', (_, text) => {
    const ratio = countTokens('o200k_base', text) / estimateTokens(Buffer.from(text));
    expect(ratio).toBeGreaterThan(1 / 1.4);
    expect(ratio).toBeLessThan(1.4);
  });

  it.each([
    ['base64', Buffer.from(Array.from({ length: 900 }, (_, i) => (i * i * 31) % 251)).toString('base64')],
    [
      'letters at random',
      Array.from({ length: 999 }, (_, i) => 'etaoinshrdlucmfwypvbgkjqxz'[(i * i * 7) % 26]).join(''),
    ],
    ['signs', '!@#$%^&*()_+-=[]{}|;:,.<>?/'.repeat(30)],
    ['emoji', '😀🎉👍🏽❤️🔥🚀'.repeat(30)],
  ])('is off by less than five times, whatever the text: %s', (_, text) => {
    const ratio = countTokens('o200k_base', text) / estimateTokens(Buffer.from(text));
    expect(Math.max(ratio, 1 / ratio)).toBeLessThan(5);
  });
});
