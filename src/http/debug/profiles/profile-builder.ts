import { fileURLToPath } from 'node:url';
import type { Runtime } from 'node:inspector';
import type { Profile, ValueType } from '../../../gen/perftools/profiles/profile';

/** What a profile measures, in the words of pprof, for example `cpu` in `nanoseconds`. */
export interface Measure {
  readonly type: string;
  readonly unit: string;
}

export interface ProfileHead {
  /** What the values of a sample are. */
  readonly sampleTypes: readonly Measure[];
  /** What lies between two samples: `period` units of `periodType`. */
  readonly periodType: Measure;
  readonly period: number;
  /** How long was recorded, in milliseconds. */
  readonly duration: number;
}

type Frame = Runtime.CallFrame;

const PROGRAM = 'weir';
const MAPPING_ID = 1n;

/** Builds a profile for pprof from stacks of V8: texts, functions and locations are numbered and written once. */
export class ProfileBuilder {
  readonly #strings = new Map([['', 0n]]);
  readonly #locationIds = new Map<string, bigint>();
  readonly #profile: Profile;

  constructor({ sampleTypes, periodType, period, duration }: ProfileHead) {
    this.#profile = {
      sampleType: sampleTypes.map((measure) => this.#measure(measure)),
      sample: [],
      mapping: [
        {
          id: MAPPING_ID,
          filename: this.#string(PROGRAM),
          hasFunctions: true,
          hasFilenames: true,
          hasLineNumbers: true,
        },
      ],
      location: [],
      function: [],
      stringTable: [],
      timeNanos: nanoseconds(Date.now() - duration),
      durationNanos: nanoseconds(duration),
      periodType: this.#measure(periodType),
      period: BigInt(period),
    };
  }

  /**
   * Adds a sample.
   *
   * @param stack the innermost function first
   * @param values whole numbers, one for each sample type
   */
  add(stack: readonly Frame[], values: readonly number[]): void {
    this.#profile.sample.push({ locationId: stack.map((frame) => this.#location(frame)), value: values.map(BigInt) });
  }

  finish(): Profile {
    return { ...this.#profile, stringTable: [...this.#strings.keys()] };
  }

  #measure({ type, unit }: Measure): ValueType {
    return { type: this.#string(type), unit: this.#string(unit) };
  }

  #string(text: string): bigint {
    const known = this.#strings.get(text);
    if (known !== undefined) return known;
    const index = BigInt(this.#strings.size);
    this.#strings.set(text, index);
    return index;
  }

  /** The location of a function, which is where it begins; the function gets the same id. */
  #location(frame: Frame): bigint {
    const { functionName, url, lineNumber, columnNumber } = frame;
    const key = [functionName, url, lineNumber, columnNumber].join('\n');
    const known = this.#locationIds.get(key);
    if (known !== undefined) return known;
    const id = BigInt(this.#locationIds.size + 1);
    this.#locationIds.set(key, id);
    const systemName = functionName === '' ? '(anonymous)' : functionName;
    const file = fileOf(url);
    // V8 counts lines from 0, and native functions have -1.
    const startLine = BigInt(lineNumber + 1);
    this.#profile.function.push({
      id,
      name: this.#string(readableName(systemName, file, lineNumber + 1)),
      systemName: this.#string(systemName),
      filename: this.#string(file),
      startLine,
    });
    this.#profile.location.push({ id, mappingId: MAPPING_ID, line: [{ functionId: id, line: startLine }] });
    return id;
  }
}

/** The path of a script: V8 reports it as a URL in one kind of profile and as a path in the other. */
function fileOf(url: string): string {
  return url.startsWith('file:') ? fileURLToPath(url) : url;
}

/** The name with the place: pprof adds up functions of one name, and many functions of JavaScript have the same name or none. */
function readableName(name: string, file: string, line: number): string {
  if (file === '') return name;
  return `${name} ${file.startsWith('node:') ? file : file.split('/').slice(-2).join('/')}:${line}`;
}

function nanoseconds(milliseconds: number): bigint {
  return BigInt(Math.round(milliseconds)) * 1_000_000n;
}
