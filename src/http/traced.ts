import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Middleware } from 'koa';
import type { CallTrace, Tracer } from '../streams/ports/tracer';

/** Begins a span for the requests of a path that the tracer chooses. Must be the outermost middleware, to see every status. */
export function traced(path: string, tracer: Tracer): Middleware {
  return async (ctx, next) => {
    if (ctx.path !== path) {
      await next();
      return;
    }
    const trace = beginTrace(ctx.req, path, tracer);
    // Does not throw: the error boundary turns errors into responses.
    await next();
    endTrace(trace, ctx.res);
  };
}

/** Begins the span of a request for a path, if the tracer chooses it. */
export function beginTrace(request: IncomingMessage, path: string, tracer: Tracer): CallTrace | undefined {
  const method = request.method ?? '';
  const attributes = { 'http.request.method': method, 'http.route': path };
  return tracer.begin(`${method} ${path}`, attributes, { metadata: headersOf(request) });
}

/** Reads the headers of a request, by their names in lower case. */
export function headersOf({ headers }: IncomingMessage): (name: string) => string | undefined {
  return (name) => headers[name]?.toString() || undefined;
}

/** Ends the span of a request with the status of its response. */
export function endTrace(trace: CallTrace | undefined, { statusCode }: ServerResponse): void {
  trace?.ended({ 'http.response.status_code': statusCode }, statusCode >= 500);
}
