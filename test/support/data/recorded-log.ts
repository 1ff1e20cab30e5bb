import type { Log, LogFields } from '../../../src/streams/ports/log';

interface RecordedLine {
  readonly level: 'debug' | 'info' | 'notice' | 'warn' | 'error';
  readonly message: string;
  readonly fields: LogFields;
}

/** A log that records its lines for the test. */
export class RecordedLog implements Log {
  readonly lines: RecordedLine[] = [];
  readonly debug = this.#at('debug');
  readonly info = this.#at('info');
  readonly notice = this.#at('notice');
  readonly warn = this.#at('warn');
  readonly error = this.#at('error');

  constructor(readonly isDebug = true) {}

  get messages(): readonly string[] {
    return this.lines.map(({ message }) => message);
  }

  /** Everything that was written, as one text. */
  get text(): string {
    return this.lines
      .map(({ message, fields }) => `${message} ${Object.values(fields).map(String).join(' ')}`)
      .join('\n');
  }

  #at(level: RecordedLine['level']) {
    return (message: string, fields: LogFields = {}): void => {
      if (level !== 'debug' || this.isDebug) this.lines.push({ level, message, fields });
    };
  }
}
