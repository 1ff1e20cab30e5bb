/** How the text of a variable becomes a value, and back. */
export interface ValueType<Value> {
  /** The allowed values, as a phrase that completes "allowed: …". */
  readonly allowed: string;
  /**
   * A JSON schema that accepts the values as YAML has them; the chart rejects others. It may accept more than
   * {@link parse}.
   */
  readonly schema?: object;
  /** What messages must hide: the whole `value`, or the `credentials` in an address. */
  readonly secret?: 'value' | 'credentials';
  /** Whether blanks around a text in a file belong to the value, as they may to a password. */
  readonly keepsBlanks?: true;
  /**
   * Parses a text that is not empty, and has no surrounding blanks unless the type keeps them. The result never quotes
   * the text, which may be a secret.
   */
  parse(text: string): ParseResult<Value>;
  /** The value as a user would write it. */
  format(value: Value): string;
}

/** The result of parsing a text: a value, perhaps with a notice about it, or a rejection, perhaps with a hint. */
export type ParseResult<Value> = Accepted<Value> | Rejected;

export interface Accepted<Value> {
  readonly value: Value;
  readonly notice?: string;
}

export interface Rejected {
  readonly rejected: true;
  readonly hint?: string;
}

export function accepted<Value>(value: Value, notice?: string): Accepted<Value> {
  return notice === undefined ? { value } : { value, notice };
}

export function rejected(hint?: string): Rejected {
  return hint === undefined ? { rejected: true } : { rejected: true, hint };
}

/** A type whose values are made from those of another one, or rejected. */
export function refined<Value, Given = Value>(
  type: ValueType<Given>,
  refine: (given: Given) => ParseResult<Value>,
  format: (value: Value) => string = String,
): ValueType<Value> {
  return {
    ...type,
    parse(text) {
      const result = type.parse(text);
      if (!('value' in result)) return result;
      const outcome = refine(result.value);
      return 'value' in outcome ? accepted(outcome.value, outcome.notice ?? result.notice) : outcome;
    },
    format,
  };
}

/** A path of Linux has at most as many bytes; no other text needs more. */
const LONGEST_TEXT = 4096;
// oxlint-disable-next-line no-control-regex -- they are what it looks for
const CONTROL = /[\u0000-\u001f\u007f]/;

/** A text without control characters; `what` describes it in the help. */
export function anyText(what = 'text', longest = LONGEST_TEXT): ValueType<string> {
  return {
    allowed: what,
    parse(given) {
      if (CONTROL.test(given)) return rejected('it contains a control character, such as a line break');
      return given.length > longest ? rejected(`it has more than ${longest} characters`) : accepted(given);
    },
    format: (value) => value,
  };
}

/** A text that matches a pattern. */
export function textLike(pattern: RegExp, what: string): ValueType<string> {
  return refined(anyText(what), (given) => (pattern.test(given) ? accepted(given) : rejected()));
}

/** The path of an HTTP request, without a query. */
export const httpPath = textLike(/^\/[^\s?#]*$/, 'path that begins with /');

export const filePath = anyText('file path');

/** A user's password, or a user and a password. */
export const credentials: ValueType<string> = {
  allowed: 'password or username:password',
  parse: (given) => accepted(given),
  format: (value) => value,
  secret: 'value',
  keepsBlanks: true,
};

/** The servers of a Redis or Valkey; what they may be depends on its type, and is checked with it. */
export const storeAddress: ValueType<string> = {
  ...anyText(
    'host:port, socket path, or redis:// or rediss:// URL; sentinel: master name and sentinels; cluster: nodes',
    Infinity,
  ),
  secret: 'credentials',
};

/**
 * Headers that frame a message or belong to a connection: one of them that weir adds breaks the responses of the proxy.
 */
const FRAMING =
  /^(?:connection|content-length|content-type|host|keep-alive|proxy-connection|te|trailer|transfer-encoding|upgrade)$/i;

/** An HTTP field name (RFC 9110, section 5.1); its case is preserved. */
export const headerName = refined(textLike(/^[!#$%&'*+.^_`|~\dA-Za-z-]{1,256}$/, 'HTTP header name'), (name) =>
  FRAMING.test(name) ? rejected('HTTP itself uses this header') : accepted(name),
);

/** A shorter one could be guessed, and could not be masked in texts. */
export const operatorToken: ValueType<string> = {
  ...textLike(/^[\x21-\x7e]{16,1024}$/, '16 to 1024 visible ASCII characters, without blanks'),
  secret: 'value',
};

/**
 * One of a few words, in any case. `choice({ kvstore: ['redis'] })` accepts `kvstore`, and `redis` as a synonym for it.
 */
export function choice<Word extends string>(words: Readonly<Record<Word, readonly string[]>>): ValueType<Word> {
  const byText = new Map<string, Word>();
  const spellings: string[] = [];
  for (const name in words) {
    const synonyms = words[name];
    for (const spelling of [name, ...synonyms]) byText.set(spelling.toLowerCase(), name);
    spellings.push(synonyms.length > 0 ? `${name} (${synonyms.join(', ')})` : name);
  }
  return {
    allowed: spellings.join(', '),
    schema: { type: 'string', pattern: `^(?i:${[...byText.keys()].join('|')})$` },
    parse(given) {
      const value = byText.get(given.toLowerCase());
      return value === undefined ? rejected() : accepted(value);
    },
    format: (value) => value,
  };
}

/** `1`, `t`, `true` and `0`, `f`, `false`, in any case. */
export const boolean: ValueType<boolean> = {
  ...refined(choice({ true: ['t', '1'], false: ['f', '0'] }), (value) => accepted(value === 'true')),
  allowed: 'true or false',
  schema: { anyOf: [{ type: 'boolean' }, { enum: [0, 1] }, { type: 'string', pattern: '^(?i:true|t|1|false|f|0)$' }] },
};

const { schema: _, ...knownFormat } = choice({ text: [], json: [] });

/** As in the Go service, every value other than `json` means text. A value that is neither gets a notice. */
export const logFormat: ValueType<'text' | 'json'> = {
  ...knownFormat,
  parse(given) {
    const result = knownFormat.parse(given);
    return 'value' in result ? result : accepted('text', 'every value other than json means text');
  },
};
