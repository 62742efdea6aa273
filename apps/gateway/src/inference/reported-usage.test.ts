import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { countTokens } from '../prompt/tokenizer';
import { Prose } from '../prompt/token-estimate';
import { isHidden, isLikely } from './reported-usage';

const file = (...path: string[]) => readFileSync(join(__dirname, '../../../..', ...path), 'utf8');

describe('a reliable estimate', () => {
  const ENGLISH =
    'Yesterday we went to the great theatre in the old part of the city, and saw a new ballet that had been made by ' +
    'a well known choreographer. It was one of the best that I have seen for years, and there were so many people ' +
    'that we had to stand at the back of the hall. ';
  const random = (alphabet: string, blankEvery: number) => {
    let state = 7;
    return Array.from({ length: 4_000 }, (_, i) => {
      state = (state * 48_271) % 2_147_483_647;
      return i % blankEvery === blankEvery - 1 ? ' ' : alphabet[state % alphabet.length];
    }).join('');
  };
  const texts: [string, string][] = [
    ['English', ENGLISH],
    ['English prose with marks', file('CONTRIBUTING.md')],
    ['code', file('apps/gateway/src/upstream/exchange/exchange.ts')],
    ['SQL', file('libs/admission/src/postgres/functions/end_holds.sql')],
    ['JSON', file('package.json')],
    ['German', 'Seitdem fahren die Schiffe zwischen Wien und Passau, und viele Menschen sehen die Landschaft. '],
    ['Swahili', 'Jana tulikwenda kwenye ukumbi wa michezo na kuangalia ngoma mpya iliyoandaliwa na msanii maarufu. '],
    ['Indonesian', 'Kemarin kami pergi ke gedung kesenian untuk menonton pertunjukan balet baru yang sangat indah. '],
    ['Finnish', 'Eilen kävimme vanhassa teatterissa katsomassa uutta balettia, jonka tunnettu koreografi oli tehnyt. '],
    ['Russian', 'Вчера мы ходили в большой театр и смотрели новый балет, который поставил известный хореограф. '],
    ['Hindi', 'कल हम बड़े थिएटर में गए और एक नया बैले देखा जिसे एक प्रसिद्ध नृत्य निर्देशक ने बनाया था। '],
    ['Amharic', 'ትናንት ወደ ትልቁ ቲያትር ሄደን አዲስ ባሌ አየን፤ በታዋቂ ዳንስ አዘጋጅ የተሰራ ነበር። '],
    ['Chinese', '昨天我们去了北京的国家大剧院，观看了一场由著名编舞家创作的新芭蕾舞剧。'],
    ['Arabic', 'ذهبنا أمس إلى المسرح الكبير وشاهدنا باليه جديدا من تصميم مصمم رقصات مشهور. '],
    ['escaped Hindi', '\\u0915\\u0932 \\u0939\\u092e '],
    ['letters at random', random('abcdefghijklmnopqrstuvwxyz', 1e9)],
    ['words at random', random('abcdefghijklmnopqrstuvwxyz', 6)],
    ['short words at random', random('etaoinshrdlu', 3)],
    ['digits', random('0123456789', 1e9)],
    ['blanks', ' '.repeat(4_000)],
    ['English beside letters at random', ENGLISH.repeat(8) + random('abcdefghijklmnopqrstuvwxyz', 9)],
    ['English before blanks', ENGLISH.repeat(8) + ' '.repeat(3_000)],
  ];
  const [min, max] = [0.5, 2];
  const cases = texts.flatMap(([name, text]) =>
    (['o200k_base', 'cl100k_base', 'p50k_base', 'r50k_base'] as const).map(
      (encoding) => [name, encoding, text.repeat(Math.ceil(4_096 / text.length)).slice(0, 5_000)] as const,
    ),
  );
  it.each(cases)('supports no report outside of the band: %s by %s', (_, encoding, text) => {
    const prose = new Prose();
    prose.add(Buffer.from(text));
    if (!prose.isTrusted) return;
    const own = { least: prose.tokens, most: prose.tokens };
    const exact = countTokens(encoding, text);
    for (let reported = 1; reported < 4 * exact; reported += 1)
      if (isLikely(reported, own, { min, max })) {
        expect(reported).toBeGreaterThanOrEqual(exact * min - 2);
        expect(reported).toBeLessThanOrEqual(exact * max + 16);
      }
  });

  it('exists for English only', () => {
    const trusted = texts.filter(([, text]) => {
      const prose = new Prose();
      prose.add(Buffer.from(text.repeat(Math.ceil(4_096 / text.length))));
      return prose.isTrusted;
    });
    expect(trusted.map(([name]) => name)).toEqual(['English']);
  });
});

describe('a completion above the band', () => {
  const BAND = { min: 0.5, max: 2 };
  type Given = [tokens: number, own: number, wentToLimit: boolean, reasoning?: number | undefined, ofStops?: number];
  const hidden = ([completionTokens, own, wentToLimit, reasoning, ofStops = 0]: Given, reasons = false) => {
    const completionDetails = reasoning === undefined ? {} : { completionDetails: { reasoning_tokens: reasoning } };
    const reported = { promptTokens: 9, cachedTokens: 0, completionTokens, ...completionDetails };
    return isHidden(reported, own, { asked: 4_000, wentToLimit, ofStops, spareAbove: 16, reasons }, BAND);
  };

  it.each<[string, boolean, Given]>([
    ['tokens without text, up to the limit', true, [4_000, 0, true]],
    ['tokens without text beside others, up to the limit', true, [4_000, 300, true]],
    ['tokens without text that ended before the limit', false, [4_000, 0, false]],
    ['more than was asked for', false, [4_001, 0, true]],
    ['less than was delivered', false, [100, 300, true]],
    ['reasoning that the backend names', true, [3_000, 1, false, 2_999]],
    ['reasoning that explains a part only', false, [3_000, 1, false, 1_500]],
    ['reasoning of more than was asked for', false, [4_001, 1, false, 4_000]],
    ['a stop sequence', true, [2_016, 0, false, undefined, 1_000]],
    ['more than a stop sequence', false, [2_017, 0, false, undefined, 1_000]],
    ['a stop sequence of more than was asked for', false, [4_001, 0, false, undefined, 4_001]],
    ['reasoning that leaves less than was delivered', false, [3_000, 300, false, 2_999]],
  ])('may be of %s: %s', (_, isExplained, given) => {
    expect(hidden(given)).toBe(isExplained);
  });

  it.each<[string, boolean, Given]>([
    ['a summary that is longer than the answer', true, [3_000, 300, false, 2_999]],
    ['a summary without an answer', true, [3_000, 300, false, 3_000]],
    ['a summary that is longer than the reasoning', true, [100, 150, false, 90]],
    ['less than half of what was delivered', false, [100, 300, false, 90]],
    ['reasoning that explains a part only', false, [3_000, 300, false, 1_500]],
    ['more than was asked for', false, [4_001, 300, false, 4_000]],
  ])('may be of reasoning that is delivered as %s: %s', (_, isExplained, given) => {
    expect(hidden(given, true)).toBe(isExplained);
  });
});
