const CLASSES: readonly [RegExp, number][] = [
  [/[0-9]/, 10],
  [/[a-z]/, 26],
  [/[A-Z]/, 26],
  [/[^0-9A-Za-z]/, 33],
];

/**
 * An upper bound of the secret's entropy in bits: the lower of two estimates. One uses length and kinds of characters,
 * the other how often characters repeat (Shannon, with the correction of Miller and Madow for short texts). A secret
 * that a person made up is easier to guess than that.
 */
export function entropyBits(secret: string): number {
  const characters = [...secret];
  const alphabet = CLASSES.reduce((sum, [form, size]) => sum + (form.test(secret) ? size : 0), 0);
  const counts = new Map<string, number>();
  for (const character of characters) counts.set(character, (counts.get(character) ?? 0) + 1);
  const repetition = [...counts.values()].reduce((sum, count) => sum + count * Math.log2(characters.length / count), 0);
  const correction = (Math.max(0, counts.size - 1) / 2) * Math.LOG2E;
  return Math.min(characters.length * Math.log2(Math.max(1, alphabet)), repetition + correction);
}
