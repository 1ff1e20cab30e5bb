import { format } from 'node:util';
import type { Context } from 'koa';

/** Fields of the response, by name. */
type Headers = Readonly<Record<string, string | readonly string[] | undefined>>;

/**
 * Has an error answered with `Vary: Accept`: Koa removes the headers of the response when it answers with an error, and takes those
 * of the error. An error that cannot be changed stays as it is.
 */
export function keepVary(ctx: Context, error: unknown): void {
  if (isError(error)) addToHeaders(error);
  // Koa does not answer null and undefined at all.
  else if (error !== undefined && error !== null) answerAsError(ctx, error);
}

function addToHeaders(error: Error): void {
  const { headers } = error as Error & { readonly headers?: Headers | null };
  // Defined, not assigned: the class of the error may have a getter alone.
  Reflect.defineProperty(error, 'headers', {
    value: withAccept(headers ?? {}),
    configurable: true,
    enumerable: true,
    writable: true,
  });
}

/**
 * What is thrown without being an error has no headers for Koa, which makes an error of it in `ctx.onerror`. Made only there, so
 * that middleware that catches what the application throws still gets it as it was thrown.
 */
function answerAsError(ctx: Context, thrown: unknown): void {
  const report = ctx.onerror.bind(ctx);
  ctx.onerror = (error: unknown) => {
    if (error !== thrown) return report(error as Error);
    const made = new Error(format('non-error thrown: %j', thrown), { cause: thrown });
    addToHeaders(made);
    report(made);
  };
}

/** As Koa decides it: an error may come from another realm. */
function isError(value: unknown): value is Error {
  return value instanceof Error || Object.prototype.toString.call(value) === '[object Error]';
}

function withAccept(headers: Headers): Headers {
  const name = Object.keys(headers).find((each) => each.toLowerCase() === 'vary') ?? 'Vary';
  const fields = fieldsOf(headers[name]);
  const isVarying = fields.some((field) => field === '*' || field.toLowerCase() === 'accept');
  return isVarying ? headers : { ...headers, [name]: [...fields, 'Accept'].join(', ') };
}

/** The fields of a Vary, which may be a list. */
function fieldsOf(vary: Headers[string] = ''): readonly string[] {
  const fields = [vary].flat().join(',').split(',');
  return fields.map((field) => field.trim()).filter((field) => field !== '');
}
