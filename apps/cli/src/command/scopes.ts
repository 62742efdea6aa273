import { InvalidArgumentError } from 'commander';

/** A parser of comma-separated scopes, each of `known`. Named twice counts once. */
export function scopesOf(known: readonly string[]): (text: string) => string[] {
  return (text) => {
    const scopes = [...new Set(text.split(',').map((scope) => scope.trim()))];
    const unknown = scopes.find((scope) => !known.includes(scope));
    if (unknown !== undefined)
      throw new InvalidArgumentError(`There is no scope "${unknown}". The scopes are: ${known.join(', ')}.`);
    return scopes;
  };
}
