import type { Context } from 'koa';
import type { Descriptor } from '../../limiter/request';
import { NO_HITS_ADDEND } from '../../limiter/request';
import { readDescriptorText } from '../json/read-request';
import { HttpError } from '../server/errors';

/** An invalid request, of which the message says what is wrong. */
export function invalid(message: string): HttpError {
  return new HttpError({ status: 400, code: 'invalid_request', message });
}

/** The parameters of a query, each at most once. Rejects others. */
export function parametersOf<const Name extends string>(
  ctx: Context,
  names: readonly Name[],
): Readonly<Partial<Record<Name, string>>> {
  for (const [name, value] of Object.entries(ctx.query)) {
    if (!(names as readonly string[]).includes(name)) {
      throw invalid(
        `there is no parameter ${JSON.stringify(name.slice(0, 40))}; the parameters are ${names.join(', ')}`,
      );
    }
    if (typeof value !== 'string') throw invalid(`the parameter ${name} is repeated`);
  }
  return ctx.query as Readonly<Partial<Record<Name, string>>>;
}

/**
 * A descriptor as `key=value,key2=value2`, or in JSON as in a request, which allows commas in values, and a limit.
 *
 * @throws HttpError or MalformedBody
 */
export function readDescriptor(text: string): Descriptor {
  if (text.startsWith('{')) return readDescriptorText(text);
  const entries = text.split(',').map((pair) => {
    const equals = pair.indexOf('=');
    if (equals < 1)
      throw invalid(
        `the descriptor must be key=value,key2=value2, or JSON, but has ${JSON.stringify(pair.slice(0, 40))}`,
      );
    return { key: pair.slice(0, equals), value: pair.slice(equals + 1) };
  });
  return { entries, limit: undefined, hitsAddend: NO_HITS_ADDEND, isNegativeHits: false };
}
