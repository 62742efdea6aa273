/**
 * Characters that change the direction of the text around them: a name with them can look like another (Unicode
 * Bidi_Control).
 */
const DIRECTION = /\p{Bidi_Control}/u;
/** U+2028 and U+2029 break a line in the programs that show a name. */
const SEPARATOR = /[\p{Zl}\p{Zp}]/u;
const CONTROL = /\p{Cc}/u;
/**
 * A visible letter, digit, punctuation mark or symbol. Not a filler, a zero-width character or the empty Braille
 * pattern.
 */
const SEEN = /(?!\p{Default_Ignorable_Code_Point}|\u2800)[\p{L}\p{N}\p{P}\p{S}]/u;

/** Of the name of a tenant, a key, a token or a person. */
export const MAX_NAME_CHARS = 100;

/**
 * Returns why a name is not allowed for a tenant, a key or a token, or null if it is. A name must not look like another
 * name or be invisible. The schema checks the length.
 */
export function validateName(name: string): string | null {
  if (CONTROL.test(name)) return 'name must not have control characters, such as a line break or a tab.';
  if (SEPARATOR.test(name)) return 'name must not have line or paragraph separators (U+2028, U+2029).';
  if (DIRECTION.test(name))
    return (
      'name must not have characters that change the direction of text ' +
      '(U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069).'
    );
  if (!SEEN.test(name)) return 'name must have at least one visible character.';
  return null;
}
