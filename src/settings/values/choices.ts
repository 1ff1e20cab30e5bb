import { type ValueType, accepted, refused } from './value-type';

/** One of a few words, in any case: `choice({ kvstore: ['redis'] })` takes `kvstore`, and `redis` for the same. */
export function choice<Word extends string>(words: Readonly<Record<Word, readonly string[]>>): ValueType<Word> {
  const byText = new Map<string, Word>();
  const spellings: string[] = [];
  for (const word in words) {
    const others = words[word];
    for (const text of [word, ...others]) byText.set(text.toLowerCase(), word);
    spellings.push(others.length > 0 ? `${word} (${others.join(', ')})` : word);
  }
  return {
    allowed: spellings.join(', '),
    read(text) {
      const word = byText.get(text.toLowerCase());
      return word === undefined ? refused() : accepted(word);
    },
    write: (word) => word,
  };
}

const WORDS = new Map([
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
  read(text) {
    const value = WORDS.get(text.toLowerCase());
    return value === undefined ? refused() : accepted(value);
  },
  write: String,
};

const known = choice({ text: [], json: [] });

/** As in the Go service, whatever is not `json` means text; what is neither gets a remark. */
export const logFormat: ValueType<'text' | 'json'> = {
  ...known,
  read(text) {
    const reading = known.read(text);
    return 'value' in reading ? reading : accepted('text', 'everything but json means text');
  },
};
