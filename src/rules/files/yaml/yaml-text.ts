import { booleanOf, numberOf, scalarType } from './yaml-scalar';
import type { YamlNode } from './yaml-tree';

const LONGEST_SHOWN = 200;
/** How much of a list or mapping a message shows. */
const MOST_SHOWN = 5;
const DEEPEST_SHOWN = 2;

/** What a node is, for a message: ``the text `10` ``, `a list`, `nothing`. */
export function describeNode(node: YamlNode): string {
  if (node.kind === 'map') return 'a mapping';
  if (node.kind === 'list') return 'a list';
  switch (scalarType(node)) {
    case 'null':
      return 'nothing';
    case 'boolean':
      return `the boolean ${showText(node.text)}`;
    case 'integer':
    case 'float':
      return `the number ${showText(node.text)}`;
    default:
      return `the text '${showText(node.text)}'`;
  }
}

/** A node as the Go service prints a value that it did not expect. */
export function printNode(node: YamlNode, depth = 0): string {
  if (depth > DEEPEST_SHOWN) return '…';
  if (node.kind === 'map') {
    const entries = node.entries.slice(0, MOST_SHOWN);
    return `map[${entries.map(({ key, value }) => `${printNode(key, depth + 1)}:${printNode(value, depth + 1)}`).join(' ')}]`;
  }
  if (node.kind === 'list') {
    const items = node.items.slice(0, MOST_SHOWN);
    return `[${items.map((item) => printNode(item, depth + 1)).join(' ')}]`;
  }
  switch (scalarType(node)) {
    case 'null':
      return '<nil>';
    case 'boolean':
      return String(booleanOf(node));
    case 'integer':
    case 'float':
      return String(numberOf(node));
    default:
      return showText(node.text);
  }
}

/** A text for a message: on one line, and not longer than a message bears. */
export function showText(text: string): string {
  const line = oneLine(text);
  return line.length > LONGEST_SHOWN ? `${line.slice(0, LONGEST_SHOWN)}…` : line;
}

/** A private key that lies among the rules by mistake: what follows stays out of messages, which go into logs. */
const PRIVATE_KEY = /(?<=-----BEGIN [A-Z ]*PRIVATE KEY-----)[^]+/;

/** A text for a message, whole: on one line, without what would command a terminal, and without a private key. */
export function oneLine(text: string): string {
  const line = text.replace(PRIVATE_KEY, '…').replaceAll(/\s+/g, ' ');
  // oxlint-disable-next-line no-control-regex -- control characters are what it looks for
  return line.replaceAll(/[\u0000-\u001f\u007f-\u009f]/g, '\ufffd');
}
