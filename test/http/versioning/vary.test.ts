import { Router } from '@koa/router';
import Koa, { type Context } from 'koa';
import { api } from '../../../src/http/versioning';
import { ServedApp, appOf, describing, serve } from './serve-api';

/** Serves an action that throws an error. */
function serveThrowing(error: () => unknown): Promise<ServedApp> {
  class Throwing {
    index(ctx: Context) {
      ctx.vary('Origin');
      throw error();
    }
  }
  return serve((it) => it.version(1, () => it.resources('foo', { only: 'index' })), { controllers: () => Throwing });
}

function conflict(headers: object): Error {
  return Object.assign(new Error('no'), { status: 409, expose: true, headers });
}

class GetterOnly extends Error {
  readonly status = 409;
  readonly expose = true;
  get headers() {
    return { 'X-Reason': 'busy' };
  }
}

describe('an error of an action', () => {
  it.each([
    ['without headers', () => Object.assign(new Error('no'), { status: 409 }), 'Accept'],
    ['with another Vary', () => conflict({ Vary: 'Origin' }), 'Origin, Accept'],
    ['with another vary in lower case', () => conflict({ vary: 'Origin' }), 'Origin, Accept'],
    ['with a list of fields', () => conflict({ Vary: ['Origin', 'Cookie'] }), 'Origin, Cookie, Accept'],
    ['with an empty Vary', () => conflict({ Vary: '' }), 'Accept'],
    ['with Accept in Vary', () => conflict({ Vary: 'Origin,accept' }), 'Origin,accept'],
    ['with Accept-Encoding in Vary', () => conflict({ Vary: 'Accept-Encoding' }), 'Accept-Encoding, Accept'],
    ['with Vary: *', () => conflict({ Vary: '*' }), '*'],
    ['whose headers have only a getter', () => new GetterOnly('no'), 'Accept'],
  ])('%s is answered with its own status and Vary: Accept', async (_what, error, vary) => {
    await using app = await serveThrowing(error);
    const { status, headers } = await app.get('/api/foo');
    expect([status, headers.vary]).toEqual([409, vary]);
  });

  it('is answered with its own status when headers cannot be added to it', async () => {
    await using app = await serveThrowing(() =>
      Object.preventExtensions(Object.assign(new Error('no'), { status: 409 })),
    );
    expect((await app.get('/api/foo')).status).toBe(409);
  });

  it('that is thrown twice has Accept in Vary once', async () => {
    const error = conflict({ Vary: 'Origin' });
    await using app = await serveThrowing(() => error);
    await app.get('/api/foo');
    expect((await app.get('/api/foo')).headers.vary).toBe('Origin, Accept');
  });
});

/** Thrown without being errors: Koa answers them with status 500, whatever their properties are. */
const NOT_ERRORS: readonly (readonly [string, unknown])[] = [
  ['a string', 'no'],
  ['zero', 0],
  ['an object with a status', { status: 409, headers: { Vary: 'Origin' } }],
];

/** A router with a handler of the parameter `id` that throws, registered before or after the `api` block. */
function routerThrowing(error: () => unknown, when: 'before' | 'after'): Router {
  const router = new Router();
  function refuse(): never {
    throw error();
  }
  if (when === 'before') router.param('id', refuse);
  api(router, { vendorString: 'acme', controllers: describing }, (it) => it.version(1, () => it.resources('foo')));
  if (when === 'after') router.param('id', refuse);
  return router;
}

describe('what is thrown without being an error', () => {
  it.each(NOT_ERRORS)('by an action, such as %s, is answered with Vary: Accept', async (_what, thrown) => {
    await using app = await serveThrowing(() => thrown);
    const { status, headers } = await app.get('/api/foo');
    expect([status, headers.vary]).toEqual([500, 'Accept']);
  });

  it.each(NOT_ERRORS)('by a handler of a parameter, such as %s, is answered with it', async (_what, thrown) => {
    await using app = await ServedApp.start(appOf(routerThrowing(() => thrown, 'before')));
    const { status, headers } = await app.get('/api/foo/1');
    expect([status, headers.vary]).toEqual([500, 'Accept']);
  });

  it('reaches the middleware of the application as it is, and is reported as Koa does', async () => {
    const thrown = { code: 'busy' };
    const koa = new Koa();
    const caught: unknown[] = [];
    const reported: Error[] = [];
    koa.on('error', (error: Error) => reported.push(error));
    koa.use(async (_ctx, next) => {
      try {
        await next();
      } catch (error) {
        caught.push(error);
        throw error;
      }
    });
    koa.use(routerThrowing(() => thrown, 'before').routes());
    await using app = await ServedApp.start(koa);
    await app.get('/api/foo/1');
    expect(caught).toEqual([thrown]);
    expect(reported.map(({ message, cause }) => [message, cause])).toEqual([
      ['non-error thrown: {"code":"busy"}', thrown],
    ]);
  });

  it('changes nothing for another error that the application throws instead', async () => {
    const koa = new Koa();
    koa.silent = true;
    koa.use(async (ctx, next) => {
      try {
        await next();
      } catch {
        ctx.throw(503, 'later');
      }
    });
    koa.use(routerThrowing(() => 'no', 'before').routes());
    await using app = await ServedApp.start(koa);
    const { status, text } = await app.get('/api/foo/1');
    expect([status, text]).toEqual([503, 'Service Unavailable']);
  });
});

describe('an error of a handler of a parameter', () => {
  it.each(['before', 'after'] as const)('registered %s the block has its own status and Vary: Accept', async (when) => {
    await using app = await ServedApp.start(appOf(routerThrowing(() => conflict({ Vary: 'Origin' }), when)));
    const { status, headers, text } = await app.get('/api/foo/1');
    expect([status, headers.vary, text]).toEqual([409, 'Origin, Accept', 'no']);
  });

  it('has it in a nested router, and for a request that no version serves', async () => {
    const outer = new Router();
    outer.use('/:tenant', routerThrowing(() => conflict({}), 'before').routes());
    await using app = await ServedApp.start(appOf(outer));
    for (const accept of [undefined, 'application/vnd.other+json']) {
      const { status, headers } = await app.get('/t/api/foo/1', accept);
      expect([status, headers.vary]).toEqual([409, 'Accept']);
    }
  });
});

it('an answer of a handler of a parameter has Vary: Accept', async () => {
  const router = new Router();
  router.param('id', (_id, ctx) => void (ctx.status = 410));
  api(router, { vendorString: 'acme', controllers: describing }, (it) => it.version(1, () => it.resources('foo')));
  await using app = await ServedApp.start(appOf(router));
  const { status, headers } = await app.get('/api/foo/1');
  expect([status, headers.vary]).toEqual([410, 'Accept']);
});
