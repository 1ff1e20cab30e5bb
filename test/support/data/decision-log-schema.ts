import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv } from 'ajv';

const FILE = join(__dirname, '../../../schema/decision-log.schema.json');
const schema: object = JSON.parse(readFileSync(FILE, 'utf8'));
const validate = new Ajv({ strict: true, strictRequired: false, allErrors: true }).compile(schema);

/** A line of the decision log as an object; throws when it does not follow the schema. */
export function parseDecisionLine(line: string): Readonly<Record<string, unknown>> {
  const record = JSON.parse(line) as Readonly<Record<string, unknown>>;
  if (!validate(record)) throw new Error(`${JSON.stringify(validate.errors)} in ${line}`);
  return record;
}
