/** Fields of the response, by name. */
type Headers = Readonly<Record<string, string | readonly string[] | undefined>>;

/**
 * An error with `Vary: Accept` among its headers: Koa removes the headers of the response when it answers with an error, and takes
 * those of the error. An error that cannot be changed is returned as it is.
 */
export function varyingByAccept(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const { headers } = error as Error & { readonly headers?: Headers | null };
  // Defined, not assigned: the class of the error may have a getter alone.
  Reflect.defineProperty(error, 'headers', {
    value: withAccept(headers ?? {}),
    configurable: true,
    enumerable: true,
    writable: true,
  });
  return error;
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
