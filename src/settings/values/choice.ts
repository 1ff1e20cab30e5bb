import { accepted, refused, type ValueType } from './value-type';

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
