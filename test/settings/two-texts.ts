import type { Setting } from '../../src/settings/table/setting';

/** Texts of which every setting parses at least two as different values. */
const TEXTS = [
  'false',
  'true',
  '7s',
  '9s',
  '11',
  '13',
  '0.25',
  '0.75',
  '/a',
  '/b',
  'a:1',
  'b:2',
  'a=1',
  'b=2',
  'one',
  'two',
];
const WORDS = [
  'memory',
  'kvstore',
  'single',
  'cluster',
  'CREATE',
  'WAIT',
  'FILE',
  'GRPC_XDS_SOTW',
  'tcp',
  'udp',
  'unix',
  'denied',
  'all',
];
const MORE = [
  'http',
  'grpc',
  'info',
  'error',
  'text',
  'json',
  '_a._tcp.b',
  '_c._tcp.d',
  ':1',
  ':2',
  '2000000',
  '3000000',
  'a-token-of-operators',
  'another-token-of-operators',
];

/** Two texts that the setting parses as different values. */
export function twoTexts({ type, name }: Setting): readonly [string, string] {
  const texts = new Map<string, string>();
  for (const text of [...TEXTS, ...WORDS, ...MORE]) {
    const result = type.parse(text);
    if ('value' in result && result.notice === undefined) texts.set(type.format(result.value), text);
  }
  const [one, other] = texts.values();
  if (one === undefined || other === undefined) throw new Error(`${name} accepts fewer than two of the texts`);
  return [one, other];
}
