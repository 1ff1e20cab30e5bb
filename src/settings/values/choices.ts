import { type ValueType, accepted, rejected } from './value-type';

/** One of a few words, in any case. `choice({ kvstore: ['redis'] })` accepts `kvstore`, and `redis` as a synonym for it. */
export function choice<Word extends string>(words: Readonly<Record<Word, readonly string[]>>): ValueType<Word> {
  const byText = new Map<string, Word>();
  const spellings: string[] = [];
  for (const word in words) {
    const synonyms = words[word];
    for (const text of [word, ...synonyms]) byText.set(text.toLowerCase(), word);
    spellings.push(synonyms.length > 0 ? `${word} (${synonyms.join(', ')})` : word);
  }
  return {
    allowed: spellings.join(', '),
    parse(text) {
      const word = byText.get(text.toLowerCase());
      return word === undefined ? rejected() : accepted(word);
    },
    format: (word) => word,
  };
}

const BOOLEANS = new Map([
  ['1', true],
  ['t', true],
  ['true', true],
  ['0', false],
  ['f', false],
  ['false', false],
]);

/** `1`, `t`, `true` and `0`, `f`, `false`, in any case. */
export const boolean: ValueType<boolean> = {
  allowed: 'true or false',
  parse(text) {
    const value = BOOLEANS.get(text.toLowerCase());
    return value === undefined ? rejected() : accepted(value);
  },
  format: String,
};

const knownFormat = choice({ text: [], json: [] });

/** As in the Go service, every value other than `json` means text. A value that is neither gets a notice. */
export const logFormat: ValueType<'text' | 'json'> = {
  ...knownFormat,
  parse(text) {
    const result = knownFormat.parse(text);
    return 'value' in result ? result : accepted('text', 'every value other than json means text');
  },
};
