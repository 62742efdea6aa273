/** What changes the direction of the text around it: a name with it can show another (Unicode's Bidi_Control). */
const DIRECTION = /\p{Bidi_Control}/u;
/** U+2028 and U+2029 end a line wherever a program shows them. */
const SEPARATOR = /[\p{Zl}\p{Zp}]/u;
const CONTROL = /\p{Cc}/u;
/** A letter, digit, sign or symbol that is drawn: not a filler, a zero-width character or the empty Braille pattern. */
const SEEN = /(?!\p{Default_Ignorable_Code_Point}|\u2800)[\p{L}\p{N}\p{P}\p{S}]/u;

/**
 * Why a name cannot be given to a tenant, a key or a token, as it could be taken for another or for none; null when it
 * can. The one rule for all of them, beside the length.
 */
export function validateName(name: string): string | null {
  if (CONTROL.test(name)) return 'name must not have control characters, such as a line break or a tab.';
  if (SEPARATOR.test(name)) return 'name must not have line or paragraph separators (U+2028, U+2029).';
  if (DIRECTION.test(name))
    return 'name must not have characters that change the direction of text (U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069).';
  if (!SEEN.test(name)) return 'name must have at least one visible character.';
  return null;
}
