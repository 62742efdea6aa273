/** A code without the spaces with which authenticators show it. */
export const codeOf = (typed: string): string => typed.replaceAll(/\s/g, '');
