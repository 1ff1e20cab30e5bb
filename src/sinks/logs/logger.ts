import pino from 'pino';
import type { Log, LogFields, LogValue } from '../../streams/ports/log';
import { describeError } from './describe-error';
import { hideUrlCredentials } from '../../text/hide-credentials';

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
const SECRET_FIELDS = ['password', 'auth', 'authorization', 'token', 'secret', 'credentials'];

const PINO_METHODS = { debug: 'debug', info: 'info', warning: 'warn', error: 'error', fatal: 'fatal' } as const;

/**
 * The logger of the service. Each line is written to the stream at once. Credentials in URLs, fields with the names of secrets and
 * the secrets known to `mask` are masked.
 */
export function createLogger({ level, format, stream, mask = (text) => text, common }: LoggerOptions): Logger {
  function masked(text: string) {
    // Not before it is masked: the beginning of a secret would remain.
    return shortened(hideUrlCredentials(mask(text)));
  }
  const logger = pino(
    {
      level: 'debug',
      base: common ?? null,
      messageKey: '@message',
      timestamp: () => `,"@timestamp":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ level: label === 'warn' ? 'warning' : label }) },
      redact: { paths: SECRET_FIELDS, censor: '***' },
    },
    { write: (line: string) => stream.write(escapeInvisible(format === 'json' ? line : toText(line))) },
  );
  function isWritten(at: LogLevel): boolean {
    return LOG_LEVELS.indexOf(at) >= LOG_LEVELS.indexOf(level);
  }
  /** @param importance the level that decides whether lines of this kind are written */
  function write(at: LogLevel, importance = at) {
    if (!isWritten(importance)) return () => undefined;
    const method = PINO_METHODS[at];
    return (message: string, fields?: LogFields) => logger[method](toRecord(fields, masked), masked(message));
  }
  return {
    isDebug: isWritten('debug'),
    debug: write('debug'),
    info: write('info'),
    notice: write('info', 'warning'),
    warn: write('warning'),
    error: write('error'),
    fatal: write('fatal'),
  };
}

function shortened(text: string): string {
  if (text.length <= MAX_TEXT) return text;
  return `${text.slice(0, MAX_TEXT)}… (cut off; ${text.length} characters in all)`;
}

/** Members of every line; a field of the same name gets the suffix `_`. */
const RESERVED = new Set(['@message', '@timestamp', 'level']);

function toRecord(fields: LogFields = {}, masked: (text: string) => string): Record<string, LogValue> {
  const result: Record<string, LogValue> = {};
  for (const [key, value] of Object.entries(fields)) {
    const text = value instanceof Error ? describeError(value) : value;
    result[RESERVED.has(key) ? `${key}_` : key] = typeof text === 'string' ? masked(text) : text;
  }
  return result;
}

/** Line separators and control characters of terminals that JSON does not escape. They occur only in quoted strings. */
const INVISIBLE = /[\u007f-\u009f\u2028\u2029]/g;

function escapeInvisible(line: string): string {
  return line.replace(INVISIBLE, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** Converts the JSON line that pino writes to the text format. */
function toText(line: string): string {
  const record: unknown = JSON.parse(line);
  const { '@timestamp': time, level, '@message': message, ...fields } = Object(record);
  let text = `time="${time}" level=${level} msg=${JSON.stringify(message)}`;
  for (const [key, value] of Object.entries(fields)) text += ` ${logfmtKey(key)}=${logfmtValue(value)}`;
  return `${text}\n`;
}

const PLAIN = /^[\p{L}\p{N}\p{P}\p{S}]+$/u;
const QUOTED = /["=\\]/;

/** A value in logfmt: a single word as it is, anything else quoted and escaped as in JSON; never more than one line. */
export function logfmtValue(value: unknown): string {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
  return PLAIN.test(text) && !QUOTED.test(text) ? text : JSON.stringify(text);
}

/** A key in logfmt: characters that would end it become `_`. */
export function logfmtKey(key: string): string {
  return key.replaceAll(/[^\p{L}\p{N}_.@-]/gu, '_') || '_';
}
