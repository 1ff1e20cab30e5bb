// The table of values in the README of the chart: keys, defaults, and the comments of values.yaml.
import { isMap, parseDocument } from 'yaml';

/** The comment of a key: of several paragraphs the last, because the first one of a file is about the file. */
function commentOf({ key }, index, map) {
  // The library gives the comment of the first key of a map to the map.
  const text = key.commentBefore ?? (index === 0 ? map.commentBefore : undefined) ?? '';
  return text.split(/\n\s*\n/).at(-1);
}

/** Whether a value is one row of the table: a map without comments inside is. */
function isRow(value) {
  return !isMap(value) || value.items.every((item, index) => commentOf(item, index, value) === '' && isRow(item.value));
}

function cell(text) {
  const line = text.split('\n').map((part) => part.trim());
  return line.join(' ').replaceAll('|', '\\|');
}

function rowsOf(map, prefix) {
  return map.items.flatMap((item, index) => {
    const path = `${prefix}${item.key.value}`;
    if (!isRow(item.value)) return rowsOf(item.value, `${path}.`);
    return [{ path, default: JSON.stringify(item.value), meaning: cell(commentOf(item, index, map)) }];
  });
}

/**
 * The table in Markdown.
 *
 * @throws Error naming the values without a comment
 */
export function valuesTable(text) {
  const rows = rowsOf(parseDocument(text).contents, '');
  const silent = rows.filter(({ meaning }) => meaning === '').map(({ path }) => path);
  if (silent.length > 0) throw new Error(`values.yaml has no comment above ${silent.join(', ')}`);
  const lines = rows.map((row) => `| \`${row.path}\` | \`${cell(row.default)}\` | ${row.meaning} |`);
  return ['| Value | Default | Meaning |', '|---|---|---|', ...lines].join('\n');
}
