/** With separators for thousands; a dash when it was not measured. */
export function integer(value: number | undefined): string {
  return value === undefined ? '–' : Math.round(value).toLocaleString('en-US');
}

/** With two significant digits, and all of a larger integer; a dash when it was not measured. */
export function significant(value: number | undefined): string {
  if (value === undefined) return '–';
  if (Math.abs(value) >= 10) return integer(value);
  return value === 0 ? '0' : Number(value.toPrecision(2)).toString();
}
