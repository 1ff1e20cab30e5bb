import type { Router } from '@koa/router';
import type Koa from 'koa';
import type { Next } from 'koa';
import type { Api, ApiOptions } from '../../packages/versioning/src';
import { ServedApp, appOf, declareOn } from './serve-api';

/** The packages of the supported versions, as package.json names them. */
const PAIRS = ['koa-2', 'koa'].flatMap((koa) =>
  ['koa-router-12', 'koa-router-13', 'koa-router-14', '@koa/router'].map((router) => [koa, router] as const),
);

type RouterClass = new (options?: { prefix?: string; methods?: string[] }) => Router;

const ANSWERS = {
  'GET /api/books': 'api/v1/books#index {}',
  'GET /api/books.json 2': 'api/v2/books#index {"format":"json"}',
  'POST /api/books': 'api/v1/books#create {}',
  'GET /api/books/new 1': 'api/v1/books#new {}',
  'GET /api/books/new 2': 'api/v2/books#show {"id":"new"}',
  'GET /api/books/3': 'api/v1/books#show {"id":"3"}',
  'GET /api/books/3/': 'api/v1/books#show {"id":"3"}',
  'GET /api/books/3.json': 'api/v1/books#show {"id":"3","format":"json"}',
  'GET /api/books/a%2Fb.c%20d': 'api/v1/books#show {"id":"a/b.c d"}',
  'GET /api/books/%zz': 'api/v1/books#show {"id":"%zz"}',
  'GET /api/books/3/edit': 'api/v1/books#edit {"id":"3"}',
  'PUT /api/books/3': 'api/v1/books#update {"id":"3"}',
  'DELETE /api/books/3': 'api/v1/books#destroy {"id":"3"}',
  'HEAD /api/books': '',
  'GET /api/admin/reports/7/lines/1 2': 'api/v2/admin/lines#show {"report_id":"7","id":"1"}',
  'GET /api/admin/reports/7/lines/1 1': '404',
  'GET /api/books/3 9': '406',
  'GET /api/books application/vnd.other+json': 'api/v1/books#index {}',
  'GET /api/books application/vnd.third+json': '406',
  'GET /api/unknown': '404',
  'GET /api/books/3/unknown': '404',
  'OPTIONS /api/unknown': '404',
  'GET /api': '404',
  'GET /API/books': '404',
  'GET /api/books/before': 'before',
  'GET /api/after': 'after',
  'POST /api/after': '405 HEAD, GET',
  'POST /api/books/import': 'import',
} as const;

function declare(it: Api): void {
  it.version(1, () => it.resources('books'));
  it.version(2, () => {
    it.resources('books', { only: ['index', 'show'] });
    it.namespace('admin', () => it.resources('reports', { only: [] }, () => it.resources('lines', { only: 'show' })));
  });
}

describe.each(PAIRS)('with %s and %s', (koa, routerPackage) => {
  const KoaClass = load(koa) as typeof Koa;
  const RouterOf = load(routerPackage) as RouterClass;
  const isOld = /1[23]$/.test(routerPackage);

  function block(router: Router, declaration = declare, options: Partial<ApiOptions> = {}): Router {
    declareOn(router, declaration, options);
    return router;
  }

  /** Two blocks of different vendors, between routes that are not versioned. */
  function mixed(): Router {
    const router = new RouterOf();
    router.get('/api/books/before', (ctx) => void (ctx.body = 'before'));
    block(router);
    block(router, (it) => it.version(1, () => it.resources('books', { only: ['index', 'show'] })), {
      vendorString: 'other',
    });
    router.get('/api/after', (ctx) => void (ctx.body = 'after'));
    router.post('/api/books/import', (ctx) => void (ctx.body = 'import'));
    return router;
  }

  it('routes are answered as declared, between routes that are not versioned, with allowedMethods', async () => {
    const router = mixed();
    await using app = await ServedApp.start(router, appOf(router, KoaClass));
    await app.expectAnswers({
      ...ANSWERS,
      'DELETE /api/books 1': '405 HEAD, GET, POST',
      'DELETE /api/books 2': '405 HEAD, GET',
      'OPTIONS /api/books/3 1': '200 HEAD, GET, PUT, DELETE',
      'PUT /api/books/import 2': '405 HEAD, GET, POST',
      'OPTIONS /api/books/import 2': '200 HEAD, GET, POST',
      'PUT /api/books/import application/vnd.third+json': '406',
      'TRACE /api/books': '501 HEAD, OPTIONS, GET, PUT, PATCH, POST, DELETE',
    });
    expect((await app.get('/api/books', 'application/vnd.third+json')).headers.vary).toBe('Accept');
    expect(router.url('api_book', { id: 3 })).toBe('/api/books/3');
    expect(router.url('api_admin_report_line', { report_id: 7, id: 1, format: 'json' })).toBe(
      '/api/admin/reports/7/lines/1.json',
    );
  });

  function books(it: Api): void {
    it.version(1, () => it.resources('books', { only: ['index', 'show', 'create'] }));
  }

  it('end, sensitive and strict decide which URLs a path has', async () => {
    for (const [options, expected] of [
      [{}, { '/api/books/': 'index {}', '/API/books': '404', '/api/books/3/x': '404' }],
      [{ sensitive: false }, { '/API/Books/3': 'show {"id":"3"}', '/api/books/': 'index {}' }],
      [{ strict: true }, { '/api/books/': '404', '/api/books/3/': '404', '/api/books': 'index {}' }],
      [
        { end: false },
        {
          '/api/books/3': 'show {"id":"3"}',
          '/api/books/3/pages/7': 'show {"id":"3"}',
          '/api/books/3.json/pages': 'show {"id":"3","format":"json"}',
          '/api/books//3': 'index {}',
          '/api/books3': '404',
          [`/api/books/3${'/a'.repeat(7_000)}`]: 'show {"id":"3"}',
        },
      ],
      [
        { end: false, strict: true },
        { '/api/books/3/': 'show {"id":"3"}', '/api/books/': 'index {}' },
      ],
    ] as const) {
      const router = block(new RouterOf(), books, options);
      for (const { opts } of router.stack) expect(opts).toMatchObject(options);
      await using app = await ServedApp.start(router, appOf(router, KoaClass));
      const answers = Object.entries(expected).map(([url, text]) => [
        `GET ${url}`,
        text.replace(/^(?=[is])/, 'api/v1/books#'),
      ]);
      await app.expectAnswers(Object.fromEntries(answers));
    }
    const router = block(new RouterOf(), books, { end: false });
    await using app = await ServedApp.start(router, appOf(router, KoaClass));
    await app.expectAnswers({
      'POST /api/books/3/pages': 'api/v1/books#create {}',
      'DELETE /api/books/3/pages': '405 HEAD, GET, POST',
    });
  });

  it('with a host, requests of other hosts are passed on, also in a nested router', async () => {
    for (const host of ['SHOP.example', /^shop\./, /^shop\.example$/]) {
      const inner = block(new RouterOf(), books, { host });
      block(inner, books, { host: 'other.example' });
      block(inner, books, { host: /^ports\.example:\d+$/g });
      inner.get('/api/books', (ctx) => void (ctx.body = 'behind'));
      const outer = new RouterOf().use('/t', inner.routes());
      for (const [prefix, router] of Object.entries({ '': inner, '/t': outer })) {
        await using app = await ServedApp.start(router, appOf(router, KoaClass));
        async function answer(name: string, method: string, path: string) {
          const { status, headers, text } = await app.send(method, prefix + path, { Host: name });
          return [name, status, headers.vary, headers.allow ?? text];
        }
        // Twice: an expression with the flag g must match each time.
        for (const name of [
          'shop.example',
          'shop.example:8080',
          'Other.example',
          'ports.example:1',
          'ports.example:1',
        ]) {
          expect(await answer(name, 'GET', '/api/books')).toEqual([name, 200, 'Accept', 'api/v1/books#index {}']);
          expect(await answer(name, 'DELETE', '/api/books/3')).toEqual([name, 405, 'Accept', 'HEAD, GET']);
        }
        for (const name of ['example', 'a.shop.example', '127.0.0.1:80']) {
          expect(await answer(name, 'GET', '/api/books')).toEqual([name, 200, undefined, 'behind']);
          expect(await answer(name, 'POST', '/api/books')).toEqual([name, 405, undefined, 'HEAD, GET']);
          expect(await answer(name, 'GET', '/api/books/3')).toEqual([name, 404, undefined, 'Not Found']);
        }
      }
    }
  });

  it('prefix comes before path, and may have parameters, also of names that paths have', async () => {
    const values: string[] = [];
    function note(value: string, _ctx: unknown, next: Next) {
      values.push(value);
      return next();
    }
    const router = block(new RouterOf().param('shop', note).param('id', note), books, {
      prefix: '/v/:shop/',
      path: 'service',
    });
    block(router, books, { prefix: '/orgs/:id', path: '', namespace: 'orgs' });
    block(router, books, { prefix: 'plain', namespace: 'plain' });
    await using app = await ServedApp.start(router, appOf(router, KoaClass));
    await app.expectAnswers({
      'GET /v/s%201/service/books/3': 'api/v1/books#show {"shop":"s 1","id":"3"}',
      'GET /v/:shop/service/books': 'api/v1/books#index {"shop":":shop"}',
      'GET /orgs/7/books/:id': 'orgs/v1/books#show {"id":":id"}',
      'GET /orgs/7/books': 'orgs/v1/books#index {"id":"7"}',
      'GET /plain/api/books.json': 'plain/v1/books#index {"format":"json"}',
      'DELETE /v/s/service/books': '405 HEAD, GET, POST',
      'GET /service/books': '404',
      'GET /v/service/books': '404',
      'GET /api/books': '404',
    });
    expect(values).toEqual(['s 1', '3', ':shop', '7', ':id', '7', 's']);
    expect(router.url('api_book', { shop: 's', id: 3 })).toBe('/v/s/service/books/3');
    const outer = new RouterOf({ prefix: '/outer' }).use('/:tenant', router.routes());
    await using nested = await ServedApp.start(outer, appOf(outer, KoaClass));
    await nested.expectAnswers({
      'GET /outer/t/v/s/service/books/3': 'api/v1/books#show {"tenant":"t","shop":"s","id":"3"}',
    });
  });

  it('middleware of the router also runs for other URLs below the prefix, and sees no parameter of its own', async () => {
    const seen: unknown[] = [];
    function note(ctx: object, next: Next) {
      seen.push({ ...Object(ctx).params });
      return next();
    }
    const router = block(new RouterOf().use(note));
    router.use(note);
    await using app = await ServedApp.start(router, appOf(router, KoaClass));
    await app.expectAnswers({ 'GET /api/unknown/path': '404' });
    expect(seen).toEqual([{}, {}]);
  });

  it('without allowedMethods, 405, 406 and OPTIONS are answered too', async () => {
    const router = mixed();
    await using app = await ServedApp.start(router, appOf(router, KoaClass, false));
    await app.expectAnswers({
      'DELETE /api/books 2': '405 HEAD, GET',
      'OPTIONS /api/books 1': '200 HEAD, GET, POST',
      'PUT /api/books/import 2': '405 HEAD, GET, POST',
      'PUT /api/books/import application/vnd.third+json': '406',
      'GET /api/unknown': '404',
    });
  });

  it('routers may be nested with parameters, before or after their handlers and prefixes are declared', async () => {
    const values: string[] = [];
    function note(label: string) {
      return (value: string, ctx: object, next: Next) => {
        values.push(`${label} ${value} ${JSON.stringify(Object(ctx).params)}`);
        return next();
      };
    }
    const inner = block(new RouterOf().param('id', note('before')));
    inner.param('id', note('after'));
    const middle = new RouterOf();
    middle.use('/:shop', inner.routes());
    const outer = new RouterOf();
    outer.param('shop', note('outer')).use('/shops', middle.routes());
    outer.prefix('/outer');
    await using app = await ServedApp.start(outer, appOf(outer, KoaClass));
    await app.expectAnswers({
      'GET /outer/shops/s%201/api/books/a.b': 'api/v1/books#show {"shop":"s 1","id":"a.b"}',
      'GET /outer/shops/s1/api/books/5.json': 'api/v1/books#show {"shop":"s1","id":"5","format":"json"}',
      'GET /shops/s1/api/books/3': '404',
      'POST /outer/shops/s1/api/books/3 2': '405 HEAD, GET',
    });
    // The handlers of a prefix run before the path is known.
    expect(values.map((text) => text.replace(/,"versionedPath":"[^"]*"/, ''))).toEqual([
      'outer s 1 {"shop":"s 1"}',
      'before a.b {"shop":"s 1","id":"a.b"}',
      'after a.b {"shop":"s 1","id":"a.b"}',
      'outer s1 {"shop":"s1"}',
      'before 5 {"shop":"s1","id":"5","format":"json"}',
      'after 5 {"shop":"s1","id":"5","format":"json"}',
      'outer s1 {"shop":"s1"}',
    ]);
    expect(outer.url('api_book', { shop: 's1', id: 3 })).toBe('/outer/shops/s1/api/books/3');
  });

  it('each of 1,000 routes has its own layer, also with others between them', async () => {
    const names = Array.from({ length: 143 }, (_, index) => `r${index}`);
    const router = block(new RouterOf(), (it) => it.version(1, () => names.forEach((name) => it.resources(name))));
    const foreign = new RouterOf().get('/foreign', (ctx) => void (ctx.body = 'foreign'));
    router.stack.splice(1, 0, ...foreign.stack);
    const seen: unknown[] = [];
    const app = new KoaClass().use((ctx, next) => next().then(() => seen.push(ctx['_matchedRouteName'])));
    await using served = await ServedApp.start(router, app.use(router.routes() as never));
    await served.expectAnswers({
      'GET /api/r0': 'api/v1/r0#index {}',
      'PUT /api/r71/3': 'api/v1/r71#update {"id":"3"}',
      'GET /api/r142/3/edit': 'api/v1/r142#edit {"id":"3"}',
      'GET /foreign': 'foreign',
    });
    expect(seen).toEqual(['api_r0_index', 'api_r71', 'edit_api_r142', undefined]);
  });

  it('a router may be nested twice, and its prefix be optional; the context names the route', async () => {
    const [prefix, format] = isOld ? ['/:lang?', '{.:format}?'] : ['{/:lang}', '{.:format}'];
    const inner = block(new RouterOf({ prefix }));
    const router = new RouterOf();
    for (const path of ['/a', '/b']) router.use(path, inner.routes());
    const seen: unknown[] = [];
    const app = appOf(new RouterOf(), KoaClass, false);
    app.use(async (ctx, next) => {
      await next();
      seen.push(ctx['_matchedRouteName'], ctx['routerName'], ctx['routerPath']);
    });
    app.use(router.routes() as never);
    await using served = await ServedApp.start(router, app);
    await served.expectAnswers({
      'GET /a/api/books/3/edit': 'api/v1/books#edit {"id":"3"}',
      'GET /b/en/api/books/3 2': 'api/v2/books#show {"lang":"en","id":"3"}',
    });
    expect(seen).toEqual([
      'edit_api_book',
      'edit_api_book',
      `/a${prefix}/api/books/:id/edit${format}`,
      'api_book',
      'api_book',
      `/b${prefix}/api/books/:id${format}`,
    ]);
  });
});

/** A class, which is the export of a package. */
function load(name: string): unknown {
  // oxlint-disable-next-line typescript/no-require-imports -- the version is chosen by the test
  return require(name) as unknown;
}
