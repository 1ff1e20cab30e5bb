import { excerpt } from '../../../text/excerpt';
import { printScalar } from './print-scalar';
import { scalarType } from './yaml-scalar';
import type { YamlNode } from './yaml-tree';

/** In characters. */
const MAX_SHOWN_LENGTH = 200;
/** How many items of a list or mapping a message shows, and how many levels of them. */
const MAX_SHOWN_ITEMS = 5;
const MAX_SHOWN_DEPTH = 2;

/** The type and text of a node, for a message: `the text '10'`, `a list`, `null`. */
export function describeNode(node: YamlNode): string {
  if (node.kind === 'map') return 'a mapping';
  if (node.kind === 'list') return 'a list';
  switch (scalarType(node)) {
    case 'null':
      return 'null';
    case 'boolean':
      return `the boolean ${showText(node.text)}`;
    case 'integer':
    case 'float':
      return `the number ${showText(node.text)}`;
    default:
      return `the text '${showText(node.text)}'`;
  }
}

/** A node in the form in which the Go service prints an unexpected value. */
export function printNode(node: YamlNode, depth = 0): string {
  if (depth > MAX_SHOWN_DEPTH) return '…';
  if (node.kind === 'map') {
    const entries = node.entries.slice(0, MAX_SHOWN_ITEMS);
    return `map[${entries.map(({ key, value }) => `${printNode(key, depth + 1)}:${printNode(value, depth + 1)}`).join(' ')}]`;
  }
  if (node.kind === 'list') {
    const items = node.items.slice(0, MAX_SHOWN_ITEMS);
    return `[${items.map((item) => printNode(item, depth + 1)).join(' ')}]`;
  }
  return showText(printScalar(node));
}

/** A text for a message: on one line and of bounded length. */
export function showText(text: string): string {
  return excerpt(oneLine(text), MAX_SHOWN_LENGTH);
}

/** A private key pasted into a rule file by mistake: it must not get into messages, which are logged. */
const PRIVATE_KEY = /(?<=-----BEGIN [A-Z ]*PRIVATE KEY-----)[^]+/;

/** A text for a message, in full length: on one line, without control characters and private keys. */
export function oneLine(text: string): string {
  const line = text.replace(PRIVATE_KEY, '…').replaceAll(/\s+/g, ' ');
  // oxlint-disable-next-line no-control-regex -- the expression looks for control characters
  return line.replaceAll(/[\u0000-\u001f\u007f-\u009f]/g, '\ufffd');
}
