import { type DeclaredRoute, api } from '#versioning';
import { Readable, pipeline } from 'node:stream';
import { createGzip } from 'node:zlib';
import { Router } from '@koa/router';
import type { Context, Middleware } from 'koa';
import { BodyMemory } from '../body';
import {
  Explanations,
  type OperatorsApiOptions,
  type OperatorsState,
  controllerOf,
  declareResources,
} from './controllers';
import { EventStreams } from './event-streams';
import { problems } from './problems';

/** Bytes of unfinished bodies of all connections. */
const MAX_UNFINISHED_BYTES = 8 * 1024 * 1024;

export interface OperatorsApi {
  /** Handles `/api` and everything below, and passes other requests on. */
  readonly middleware: Middleware;
  readonly routes: readonly DeclaredRoute[];
  /** Ends the streams, which would not end by themselves. */
  readonly close: () => void;
}

/**
 * The API with which operators see and change what the service does. It belongs on a listener that callers cannot
 * reach.
 */
export function operatorsApi(options: OperatorsApiOptions): OperatorsApi {
  const router = new Router();
  const routes = api(
    router,
    {
      vendorString: 'weir',
      defaultVersion: 1,
      updateMethods: ['PUT', 'PATCH'],
      controllers: (name) => controllerOf(name.slice('api/v1/'.length)),
    },
    (it) => it.version(1, () => declareResources(it)),
  );
  const streams = new EventStreams(options.operator, options.log);
  const memory = new BodyMemory({ maxUnfinishedBytes: MAX_UNFINISHED_BYTES });
  const state: OperatorsState = { ...options, memory, explanations: new Explanations(), streams };
  const boundary = problems(options.log);
  const handle = router.routes();
  return {
    routes,
    close: () => streams.close(),
    middleware: (ctx, next) => {
      if (ctx.path !== '/api' && !ctx.path.startsWith('/api/')) return next();
      Object.assign(ctx.state, state);
      return boundary(ctx, async () => {
        await handle(ctx as never, () => Promise.resolve());
        if (ctx.respond === false) return;
        indentForBrowsers(ctx);
        compress(ctx);
      });
    },
  };
}

/** Compresses a long answer, which is written in parts, for callers that accept it. */
function compress(ctx: Context): void {
  const { body } = ctx;
  if (!(body instanceof Readable)) return;
  ctx.vary('Accept-Encoding');
  if (ctx.acceptsEncodings('gzip', 'identity') !== 'gzip') return;
  // A pipeline ends its source, too, when the caller leaves.
  ctx.body = pipeline(body, createGzip(), () => undefined);
  ctx.set('Content-Encoding', 'gzip');
}

/** Indents the JSON of an answer for browsers, which show it as it is; programs need not read the blanks. */
function indentForBrowsers(ctx: Context): void {
  const { body } = ctx;
  if (ctx.accepts('application/json', 'text/html') !== 'text/html') return;
  if (body instanceof Readable) ctx.body = Readable.from(indented(body.setEncoding('utf8')), { objectMode: false });
  else if (typeof body === 'object' && body !== null && !Buffer.isBuffer(body)) {
    ctx.body = `${JSON.stringify(body, undefined, 2)}\n`;
  }
}

/** Indents JSON without blanks, which arrives in parts, by two blanks. */
async function* indented(parts: AsyncIterable<string>): AsyncIterableIterator<string> {
  let depth = 0;
  let isText = false;
  let isEscaped = false;
  let isOpened = false;
  for await (const part of parts) {
    let text = '';
    for (const character of part) {
      if (isText) {
        text += character;
        isText = isEscaped || character !== '"';
        isEscaped = !isEscaped && character === '\\';
        continue;
      }
      const isEnd = character === '}' || character === ']';
      if (isEnd) depth -= 1;
      // Nothing is between the brackets of an empty list.
      if (isOpened !== isEnd) text += `\n${'  '.repeat(depth)}`;
      isOpened = character === '{' || character === '[';
      if (isOpened) depth += 1;
      isText = character === '"';
      text += character === ':' ? ': ' : character;
      if (character === ',') text += `\n${'  '.repeat(depth)}`;
    }
    yield text;
  }
}
