/** The first that matches: browsers also name those that they are compatible with. */
const BROWSERS = [
  ['Edge', /Edg(?:A|iOS)?\/(\d+)/],
  ['Opera', /OPR\/(\d+)/],
  ['Firefox', /(?:Firefox|FxiOS)\/(\d+)/],
  ['Chrome', /(?:Chrome|CriOS)\/(\d+)/],
  ['Safari', /Version\/(\d+)[\d.]* .*Safari\//],
] as const;
const SYSTEMS = [
  ['Android', /Android/],
  ['iOS', /iPhone|iPad/],
  ['Windows', /Windows/],
  ['macOS', /Macintosh/],
  ['Linux', /Linux/],
] as const;
const MAX_CHARS = 60;

/** What a User-Agent header says in a few words; its beginning, if that is not known. */
export function browserName(header: string | null): string {
  if (header === null || header === '') return '–';
  const system = SYSTEMS.find(([, pattern]) => pattern.test(header));
  for (const [name, pattern] of BROWSERS) {
    const version = pattern.exec(header)?.[1];
    if (version !== undefined) return `${name} ${version}${system ? ` on ${system[0]}` : ''}`;
  }
  return header.length > MAX_CHARS ? `${header.slice(0, MAX_CHARS)}…` : header;
}
