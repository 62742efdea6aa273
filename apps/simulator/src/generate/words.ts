import { Random } from './random';

// Each word with a blank before it is one token of o200k_base, and so is the full stop. The tokenizer never merges
// across words. So a text of these pieces has exactly as many tokens as pieces (asserted in words.test.ts).
const pieces = (words: string): string[] => words.split(/\s+/).map((word) => ` ${word}`);

const OPENERS = pieces('The This Every Each One That Another Our Your Their Some');
const DETERMINERS = pieces('the this every each one that another our your their some');
const ADJECTIVES = pieces(
  `quiet bright small large simple steady careful green golden silver warm cold gentle strong deep fresh clean
   clear modern rapid silent heavy light broad narrow sharp smooth soft plain proud brave calm clever curious
   distant famous friendly gradual happy humble keen lively local lucky major minor neat noble patient perfect
   polite popular pretty proper pure rare real remote rich rough round safe secret serious short shy single slow
   solid special square stable strange sweet tall thick thin tiny vast visible vivid wide wild wise wooden young`,
);
const NOUNS = pieces(
  `river garden model system teacher student city market bridge window letter forest mountain valley village harbor
   signal machine engine pattern picture question reason message result report record journey library kitchen
   lantern language lesson level line map measure meeting memory method minute moment morning music neighbor
   network number paper path people person phrase place plan planet plant point policy portrait problem process
   project promise proposal purpose road room rule sailor school science season sentence series service shadow
   shape ship song sound source space station stone storm story stranger stream street structure subject summer
   surface table task team theory thread ticket tool tower town track tradition train tree truth value vessel view
   voice wall water way weather wheel winter word worker world writer`,
);
const VERBS = pieces(
  `follows carries finds builds keeps makes holds brings leads shows tells meets moves opens closes draws reads
   writes paints counts covers crosses describes explains explores gives guides hears helps hides improves joins
   knows learns leaves likes loves marks measures needs notices observes passes plans praises prepares protects
   proves reaches receives remembers repairs represents returns reveals saves sees sends serves shapes shares
   solves studies supports surprises takes teaches touches trusts understands uses visits watches`,
);
const PREPOSITIONS = pieces(
  `near beyond behind beside before during without within through under toward across against along among around
   from into past with for by`,
);
const ADVERBS = pieces('today again slowly quietly tomorrow together clearly carefully here now once twice forever');
const FULL_STOP = '.';

const SENTENCES = [
  [OPENERS, ADJECTIVES, NOUNS, VERBS, DETERMINERS, NOUNS, PREPOSITIONS, DETERMINERS, ADJECTIVES, NOUNS],
  [OPENERS, NOUNS, VERBS, DETERMINERS, ADJECTIVES, NOUNS],
  [OPENERS, NOUNS, PREPOSITIONS, DETERMINERS, NOUNS, VERBS, DETERMINERS, NOUNS, ADVERBS],
];

export const VOCABULARY: readonly string[] = [...new Set([FULL_STOP, ...SENTENCES.flat(2)])];

/**
 * Sentences of exactly `count` tokens, one per entry. The first entry has no leading blank. If there are two or more,
 * the last one is a full stop. All entries but the last two are independent of `count`.
 */
export function words(seed: number, count: number): string[] {
  const random = new Random(seed);
  const out: string[] = [];
  let sentence = random.pick(SENTENCES);
  let at = 0;
  while (out.length < count) {
    const left = count - out.length;
    if (at === sentence.length || (left === 1 && count > 1)) {
      // Two full stops in a row would be the single token "..", so a word comes between them.
      out.push(left === 2 ? random.pick(ADVERBS) : FULL_STOP);
      if (left === 2) continue;
      sentence = random.pick(SENTENCES);
      at = 0;
    } else {
      out.push(random.pick(sentence[at++]!));
    }
  }
  if (out[0] !== undefined) out[0] = out[0].slice(1);
  return out;
}
