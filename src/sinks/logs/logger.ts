import pino from 'pino';
import type { Log, LogFields, LogValue } from '../../streams/ports/log';
import { describeError } from './describe-error';
import { hideUrlCredentials } from '../../text/hide-credentials';

/** The names of levels in log lines, least severe first. */
export const LOG_LEVELS = ['debug', 'info', 'warning', 'error', 'fatal'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** Takes whole lines, each with its line feed. */
export interface LogStream {
  write(line: string): void;
}

export interface LoggerOptions {
  /** The least severe level that is written. */
  readonly level: LogLevel;
  /** `text` is `time="…" level=… msg="…"`, `json` an object with `@timestamp`, `@message` and `level` (document 1, 2.4). */
  readonly format: 'text' | 'json';
  /** Where lines go; standard error when not given. */
  readonly stream?: LogStream;
  /** Takes secrets out of a text; nothing when not given. */
  readonly mask?: (text: string) => string;
}

export interface Logger extends Log {
  /** For the line that says why the process ends. */
  fatal(message: string, fields?: LogFields): void;
}

/** Fields that hold a secret by their name, whatever they hold. */
const SECRET_FIELDS = ['password', 'auth', 'authorization', 'token', 'secret', 'credentials'];

const PINO_LEVELS = { debug: 'debug', info: 'info', warning: 'warn', error: 'error', fatal: 'fatal' } as const;

/**
 * The logger of the service. Lines are written at once and synchronously, so that none is lost when the process ends;
 * credentials in URLs, fields named as secrets and what `mask` knows are masked.
 */
export function createLogger({
  level,
  format,
  stream = standardError(),
  mask = (text) => text,
}: LoggerOptions): Logger {
  function masked(text: string) {
    return hideUrlCredentials(mask(text));
  }
  const logger = pino(
    {
      level: PINO_LEVELS[level],
      base: null,
      messageKey: '@message',
      timestamp: () => `,"@timestamp":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ level: label === 'warn' ? 'warning' : label }) },
      redact: { paths: SECRET_FIELDS, censor: '***' },
    },
    { write: (line: string) => stream.write(visible(format === 'json' ? line : toText(line))) },
  );
  function write(at: 'debug' | 'info' | 'warn' | 'error' | 'fatal') {
    return (message: string, fields?: LogFields) => {
      if (logger.isLevelEnabled(at)) logger[at](readable(fields, masked), masked(message));
    };
  }
  return {
    isDebug: logger.isLevelEnabled('debug'),
    debug: write('debug'),
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
    fatal: write('fatal'),
  };
}

function standardError(): LogStream {
  const destination = pino.destination({ fd: 2, sync: true });
  // Whoever read standard error has gone: no reason to end a service that others still use.
  destination.on('error', () => {});
  return destination;
}

/** Fields of ours must not pass for the line's own. */
const RESERVED = new Set(['@message', '@timestamp', 'level']);

function readable(fields: LogFields = {}, masked: (text: string) => string): Record<string, LogValue> {
  const result: Record<string, LogValue> = {};
  for (const [key, value] of Object.entries(fields)) {
    const text = value instanceof Error ? describeError(value) : value;
    result[RESERVED.has(key) ? `${key}_` : key] = typeof text === 'string' ? masked(text) : text;
  }
  return result;
}

/** JSON leaves some characters as they are that end a line or drive a terminal; all of them stand inside quotes. */
const INVISIBLE = /[\u007f-\u009f\u2028\u2029]/g;

function visible(line: string): string {
  return line.replace(INVISIBLE, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** pino writes JSON; the text form is made from its line. */
function toText(line: string): string {
  const record: unknown = JSON.parse(line);
  const { '@timestamp': time, level, '@message': message, ...fields } = Object(record);
  let text = `time="${time}" level=${level} msg=${JSON.stringify(message)}`;
  for (const [key, value] of Object.entries(fields)) text += ` ${logfmtKey(key)}=${logfmtValue(value)}`;
  return `${text}\n`;
}

const PLAIN = /^[\p{L}\p{N}\p{P}\p{S}]+$/u;
const QUOTED = /["=\\]/;

/** A value as logfmt writes it: bare where it is one word, else quoted and escaped as in JSON. Never more than one line. */
export function logfmtValue(value: unknown): string {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
  return PLAIN.test(text) && !QUOTED.test(text) ? text : JSON.stringify(text);
}

/** A key as logfmt can carry it: what would end it becomes `_`. */
export function logfmtKey(key: string): string {
  return key.replaceAll(/[^\p{L}\p{N}_.@-]/gu, '_') || '_';
}
