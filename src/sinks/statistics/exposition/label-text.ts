import { plainNumber } from '../../../text/plain-number';

/** A valid Prometheus metric name: other characters become `_`, and a leading digit is prefixed with `_`. */
export function metricName(name: string): string {
  return name.replaceAll(/[^A-Za-z0-9_:]/g, '_').replace(/^(?=\d)/, '_');
}

/** EXTRA_TAGS as labels: valid names, sorted; labels without a value are omitted, values are kept as given. */
export function extraLabels(given: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const labels = Object.entries(given)
    .filter(([, value]) => value !== '')
    .map(([label, value]) => [labelName(label), value] as const);
  return Object.fromEntries(labels.sort(([one], [other]) => (one < other ? -1 : 1)));
}

function labelName(name: string): string {
  return name.replaceAll(/\W/g, '_').replace(/^(?=\d)/, '_');
}

/** The labels of a series without braces, sorted by name; empty when there are none. */
export function labelText(labels: Readonly<Record<string, string>>): string {
  return Object.entries(labels)
    .map(([label, value]) => `${labelName(label)}="${labelValue(value)}"`)
    .sort()
    .join(',');
}

/** Lone surrogates stay; they are replaced when the page is encoded. */
function labelValue(value: string): string {
  return value.replaceAll(/[\\"\n]/g, (character) => (character === '\n' ? '\\n' : `\\${character}`));
}

/** The escaped text of a HELP line. */
export function helpText(text: string): string {
  return text.replaceAll(/[\\\n]/g, (character) => (character === '\n' ? '\\n' : '\\\\'));
}

/** A number in the Prometheus text format. */
export function numberText(value: number): string {
  if (value === Infinity) return '+Inf';
  return value === -Infinity ? '-Inf' : plainNumber(value);
}
