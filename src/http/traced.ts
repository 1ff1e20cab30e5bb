import type { Context, Middleware } from 'koa';
import type { CallTrace, Tracer } from '../streams/ports/tracer';

/** Begins a span for the requests of a path that the tracer chooses. Must be the outermost middleware, to see every status. */
export function traced(path: string, tracer: Tracer): Middleware {
  return async (ctx, next) => {
    if (ctx.path !== path) {
      await next();
      return;
    }
    const attributes = { 'http.request.method': ctx.method, 'http.route': path };
    const trace = tracer.begin(`${ctx.method} ${path}`, attributes, { metadata: (name) => ctx.get(name) || undefined });
    if (trace !== undefined) traces.set(ctx, trace);
    // Does not throw: the error boundary turns errors into responses.
    await next();
    trace?.ended({ 'http.response.status_code': ctx.status }, ctx.status >= 500);
  };
}

/** The trace of a request; undefined when it is not traced. */
export function traceOf(ctx: Context): CallTrace | undefined {
  return traces.get(ctx);
}

const traces = new WeakMap<Context, CallTrace>();
