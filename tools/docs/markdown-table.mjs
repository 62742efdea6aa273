const MAX_CELL_CHARACTERS = 120;

/**
 * @param {readonly string[]} head
 * @param {readonly (readonly string[])[]} rows
 */
export function markdownTable(head, rows) {
  const long = rows.flat().filter((cell) => cell.length > MAX_CELL_CHARACTERS);
  if (long.length > 0) throw new Error(`Longer than ${MAX_CELL_CHARACTERS} characters:\n${long.join('\n')}`);
  const line = (cells) => `| ${cells.join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}
