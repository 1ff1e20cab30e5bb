import type { Log, LogFields } from '../../../src/log/log';
import { Arrivals } from '../waiting/arrivals';

interface RecordedLine {
  readonly level: 'debug' | 'info' | 'notice' | 'warn' | 'error';
  readonly message: string;
  readonly fields: LogFields;
}

/** A log that records its lines for the test. */
export class RecordedLog implements Log {
  readonly lines: RecordedLine[] = [];
  readonly #arrivals = new Arrivals<string>('a line');
  readonly debug = this.#at('debug');
  readonly info = this.#at('info');
  readonly notice = this.#at('notice');
  readonly warn = this.#at('warn');
  readonly error = this.#at('error');

  constructor(readonly isDebug = true) {}

  get messages(): readonly string[] {
    return this.lines.map(({ message }) => message);
  }

  /** The lines in short: `level message`. */
  get short(): readonly string[] {
    return this.lines.map(({ level, message }) => `${level} ${message}`);
  }

  /** Everything that was written, as one text. */
  get text(): string {
    return this.lines
      .map(({ message, fields }) => `${message} ${Object.values(fields).map(String).join(' ')}`)
      .join('\n');
  }

  /** Waits for the next line, in short, that matches. */
  async line(pattern: RegExp): Promise<string> {
    for (;;) {
      const line = await this.#arrivals.next();
      if (pattern.test(line)) return line;
    }
  }

  #at(level: RecordedLine['level']) {
    return (message: string, fields: LogFields = {}): void => {
      if (level === 'debug' && !this.isDebug) return;
      this.lines.push({ level, message, fields });
      this.#arrivals.add(`${level} ${message}`);
    };
  }
}
