import pino from 'pino';
import type { Log, LogFields, LogValue } from '../../log/log';
import { excerpt } from '../../text/excerpt';
import { hideUrlCredentials } from '../../text/hide-credentials';
import { visibleJson } from '../../text/visible';

/** The level names that appear in log lines, least severe first. */
export const LOG_LEVELS = ['debug', 'info', 'warning', 'error', 'fatal'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** Receives complete lines, each with its line feed. */
export interface LogStream {
  write(line: string): void;
}

export interface LoggerOptions {
  /** The least severe level to write. */
  readonly level: LogLevel;
  /** `text`: `time="…" level=… msg="…"` in logfmt; `json`: an object with `@timestamp`, `@message` and `level`. */
  readonly format: 'text' | 'json';
  readonly stream: LogStream;
  /** Replaces secrets in a text; none are replaced if undefined. */
  readonly mask?: (text: string) => string;
  /** Fields of every line. */
  readonly common?: Readonly<Record<string, string | number>>;
}

export interface Logger extends Log {
  /** For the line that gives the reason why the process exits. */
  fatal(message: string, fields?: LogFields): void;
}

/** The maximum length of a message and of the text in a field, in UTF-16 code units; the rest is cut off. */
const MAX_TEXT = 64 * 1024;

/** Fields that are masked because of their name. */
const SECRET_FIELDS = new Set(['password', 'auth', 'authorization', 'token', 'secret', 'credentials']);
/** Members of every line; a field of the same name gets the suffix `_`. */
const RESERVED = new Set(['@message', '@timestamp', 'level']);

/** Unlike other lines of the level `info`, a notice is also written at the level `warning`. */
const LEVEL_NUMBERS = { debug: 20, info: 30, warning: 40, notice: 41, error: 50, fatal: 60 } as const;

/** The names of the levels in lines. */
const LABELS: Readonly<Record<number, string>> = Object.fromEntries(
  Object.entries(LEVEL_NUMBERS).map(([name, number]) => [number, name === 'notice' ? 'info' : name]),
);

/** The fields of a line. Those that are undefined are left out. */
type Fields = Readonly<Record<string, Exclude<LogValue, Error>>>;

/**
 * The logger of the service. Each line is written to the stream at once. Credentials in URLs, fields with the names of
 * secrets and the secrets known to `mask` are masked.
 */
export function createLogger({ level, format, stream, mask = (text) => text, common }: LoggerOptions): Logger {
  function masked(text: string): string {
    // Not before it is masked: the beginning of a secret would remain.
    return excerpt(hideUrlCredentials(mask(text)), MAX_TEXT);
  }
  function fieldsOf(given: LogFields): Fields {
    const fields: Record<string, Exclude<LogValue, Error>> = {};
    for (const [key, value] of Object.entries(given)) {
      const text = value instanceof Error ? describeError(value) : value;
      const shown = SECRET_FIELDS.has(key) ? '***' : typeof text === 'string' ? masked(text) : text;
      fields[RESERVED.has(key) ? `${key}_` : key] = shown;
    }
    return fields;
  }
  const options: pino.LoggerOptions<keyof typeof LEVEL_NUMBERS, true> = {
    level,
    customLevels: LEVEL_NUMBERS,
    useOnlyCustomLevels: true,
    base: common ?? null,
    messageKey: '@message',
    timestamp: () => `,"@timestamp":"${new Date().toISOString()}"`,
    formatters: { level: (_, number) => ({ level: LABELS[number] }) },
    hooks: {
      // pino's redaction and serializers would change the lines of JSON only.
      logMethod: function logMasked(args, method) {
        const [fields, message] = args as unknown as [LogFields, string];
        method.call(this, fieldsOf(fields), masked(message));
      },
    },
  };
  const logger = pino(options, format === 'json' ? jsonLines(stream) : textLines(stream, common));
  return {
    isDebug: logger.isLevelEnabled('debug'),
    debug: (message, fields = {}) => logger.debug(fields, message),
    info: (message, fields = {}) => logger.info(fields, message),
    notice: (message, fields = {}) => logger.notice(fields, message),
    warn: (message, fields = {}) => logger.warning(fields, message),
    error: (message, fields = {}) => logger.error(fields, message),
    fatal: (message, fields = {}) => logger.fatal(fields, message),
  };
}

function jsonLines(stream: LogStream): pino.DestinationStream {
  return { write: (line) => stream.write(visibleJson(line)) };
}

/** Lines in logfmt, from what pino passes to a stream that requests it in addition to the line in JSON. */
function textLines(stream: LogStream, common: LoggerOptions['common']): pino.DestinationStream {
  const metadata = { lastLevel: 0, lastTime: '', lastMsg: '', lastObj: {} };
  return Object.assign(metadata, {
    [pino.symbols.needsMetadataGsym]: true,
    write: () => {
      const { lastTime, lastLevel, lastMsg } = metadata;
      let text = `time=${lastTime} level=${LABELS[lastLevel]} msg=${JSON.stringify(lastMsg)}`;
      for (const [key, value] of Object.entries({ ...common, ...(metadata.lastObj as Fields) })) {
        if (value !== undefined) text += ` ${logfmtKey(key)}=${logfmtValue(value)}`;
      }
      stream.write(`${visibleJson(text)}\n`);
    },
  });
}

const PLAIN = /^[\p{L}\p{N}\p{P}\p{S}]+$/u;
const QUOTED = /["=\\]/;

/** A value in logfmt: a single word as it is, anything else quoted and escaped as in JSON; never more than one line. */
function logfmtValue(value: string | number | boolean | null): string {
  const text = String(value);
  return PLAIN.test(text) && !QUOTED.test(text) ? text : JSON.stringify(text);
}

/** A key in logfmt: characters that would end it become `_`. */
function logfmtKey(key: string): string {
  return key.replaceAll(/[^\p{L}\p{N}_.@-]/gu, '_') || '_';
}

const MAX_CAUSES = 5;

/**
 * An error as one text: its message, followed by those of its causes unless it quotes them. An internal error includes
 * its stack.
 */
export function describeError(error: Error): string {
  const messages: string[] = [];
  let next: unknown = error;
  for (let depth = 0; next instanceof Error && depth < MAX_CAUSES; depth += 1) {
    const cause = next;
    const message = isInternalError(cause) ? (cause.stack ?? String(cause)) : shortMessage(cause);
    if (!messages.some((earlier) => quotes(earlier, message, cause))) messages.push(message);
    next = cause.cause;
  }
  return messages.join(': ');
}

/** Whether a text contains the message of an error, or stands for it with its code in parentheses. */
function quotes(text: string, message: string, error: Error): boolean {
  return text.includes(message) || ('code' in error && text.includes(`(${String(error.code)})`));
}

function shortMessage(error: Error): string {
  // A failed connection attempt to several addresses ends in an AggregateError without a message of its own.
  if (error.message === '' && error instanceof AggregateError) return error.errors.map(String).join('; ');
  // Node appends the files from which a module that it cannot find was required.
  const [message = ''] = error.message.split('\nRequire stack:');
  return message || error.name;
}

/** Errors that only a bug in the program throws. */
function isInternalError(error: Error): boolean {
  return error instanceof TypeError || error instanceof ReferenceError || error instanceof RangeError;
}
