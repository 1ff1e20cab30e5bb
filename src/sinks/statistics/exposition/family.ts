import { helpText, numberText } from './label-text';

export type FamilyType = 'counter' | 'gauge' | 'histogram' | 'summary';

/** One series; for a histogram or summary, the series of one set of labels. */
export interface Series {
  /** The approximate number of lines, for splitting a page into chunks. */
  readonly lines: number;
  write(): string;
}

/** The series of one metric, which the text format requires to be contiguous. */
export class Family {
  /** The HELP and TYPE lines. */
  readonly head: string;
  readonly series: Series[] = [];
  readonly #byLabels = new Map<string, Series>();

  constructor(
    name: string,
    readonly type: FamilyType,
    help: string,
  ) {
    this.head = `# HELP ${name} ${helpText(help)}\n# TYPE ${name} ${type}\n`;
  }

  /** The series with these labels, created on first use. */
  seriesOf<Made extends Series>(labels: string, make: () => Made): Made {
    let series = this.#byLabels.get(labels);
    if (series === undefined) {
      series = make();
      this.#byLabels.set(labels, series);
      this.series.push(series);
    }
    // A family has one type, and each type one class of series.
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    return series as Made;
  }
}

/** A number that is read when a page is written: the sum of all statistics that are mapped to the series. */
export class NumberSeries implements Series {
  readonly lines = 1;
  readonly #prefix: string;
  readonly #reads: (() => number)[] = [];

  constructor(name: string, labels: string) {
    this.#prefix = labels === '' ? name : `${name}{${labels}}`;
  }

  /** @param scale factor applied to the number; it may differ between statistics */
  readFrom(read: () => number, scale: number): void {
    this.#reads.push(scale === 1 ? read : () => read() * scale);
  }

  write(): string {
    let sum = 0;
    for (const read of this.#reads) sum += read();
    return `${this.#prefix} ${numberText(sum)}\n`;
  }
}
