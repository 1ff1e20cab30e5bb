import { helpText, numberText } from './label-text';

export type FamilyType = 'counter' | 'gauge' | 'histogram' | 'summary';

/** One series, or for a timer the few that belong together. */
export interface Series {
  /** How many lines it is, roughly: for making chunks of them. */
  readonly lines: number;
  write(): string;
}

/** The series of one metric name, which the format wants to stand together. */
export class Family {
  readonly head: string;
  readonly series: Series[] = [];
  readonly byLabels = new Map<string, Series>();

  constructor(
    readonly name: string,
    readonly type: FamilyType,
    help: string,
  ) {
    this.head = `# HELP ${name} ${helpText(help)}\n# TYPE ${name} ${type}\n`;
  }

  /** The series with these labels, made when it is not there. */
  seriesOf<Made extends Series>(labels: string, make: () => Made): Made {
    let series = this.byLabels.get(labels);
    if (series === undefined) {
      series = make();
      this.byLabels.set(labels, series);
      this.series.push(series);
    }
    // A family has one type, and each type one class of series.
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    return series as Made;
  }
}

/** A number, read whenever the page is written. Several statistics that map to one series are added up. */
export class NumberSeries implements Series {
  readonly lines = 1;
  readonly #prefix: string;
  #reads: readonly (() => number)[] = [];

  constructor(name: string, labels: string) {
    this.#prefix = labels === '' ? name : `${name}{${labels}}`;
  }

  /** @param scale what the number is multiplied with; each mapping has its own */
  readFrom(read: () => number, scale: number): void {
    this.#reads = [...this.#reads, scale === 1 ? read : () => read() * scale];
  }

  write(): string {
    let sum = 0;
    for (const read of this.#reads) sum += read();
    return `${this.#prefix} ${numberText(sum)}\n`;
  }
}
