import type { Log, LogFields } from '../../../src/streams/ports/log';

export interface RecordedLine {
  readonly level: 'debug' | 'info' | 'notice' | 'warn' | 'error';
  readonly message: string;
  readonly fields: LogFields;
}

/** A log that records its lines for the test. */
export class RecordedLog implements Log {
  readonly isDebug: boolean;
  readonly lines: RecordedLine[] = [];

  constructor(isDebug = true) {
    this.isDebug = isDebug;
  }

  debug(message: string, fields: LogFields = {}): void {
    if (this.isDebug) this.lines.push({ level: 'debug', message, fields });
  }

  info(message: string, fields: LogFields = {}): void {
    this.lines.push({ level: 'info', message, fields });
  }

  notice(message: string, fields: LogFields = {}): void {
    this.lines.push({ level: 'notice', message, fields });
  }

  warn(message: string, fields: LogFields = {}): void {
    this.lines.push({ level: 'warn', message, fields });
  }

  error(message: string, fields: LogFields = {}): void {
    this.lines.push({ level: 'error', message, fields });
  }

  get messages(): readonly string[] {
    return this.lines.map(({ message }) => message);
  }

  /** Everything that was written, as one text. */
  get text(): string {
    return this.lines
      .map(({ message, fields }) => `${message} ${Object.values(fields).map(String).join(' ')}`)
      .join('\n');
  }
}
