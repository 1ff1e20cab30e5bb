/** Lines as they stand in a stream of bytes: each ends in a newline. */
export function endedLines(lines: readonly string[]): string {
  return `${lines.join('\n')}\n`;
}
