import { Router } from '@koa/router';
import { type Next } from 'koa';
import type { Api } from '../../packages/versioning/src';
import { ServedApp, declareOn } from './serve-api';

/** A router with a block, and its application. */
function routed(declare: (it: Api) => void, router = new Router()) {
  return { router, routes: declareOn(router, declare), start: () => ServedApp.start(router) };
}

function foo(it: Api): void {
  it.version(1, () => it.resources('foo'));
}

describe('with other routes of the router', () => {
  it('a path may have methods that are not versioned, and middleware of the router applies', async () => {
    const router = new Router().use((ctx, next) => (ctx.set('X-Middleware', 'yes'), next()));
    router.get('/api/foo/before', (ctx) => void (ctx.body = 'before'));
    const { start } = routed((it) => it.version(1, () => it.resources('foo', { only: 'show' })), router);
    router.post('/api/foo/import', (ctx) => void (ctx.body = 'imported'));
    await using app = await start();
    await app.expectAnswers({
      'GET /api/foo/before': 'before',
      'GET /api/foo/import': 'api/v1/foo#show {"id":"import"}',
      'POST /api/foo/import': 'imported',
      'PUT /api/foo/import': '405 HEAD, GET, POST',
    });
    for (const path of ['/api/foo/3', '/api/unknown', '/api/foo.xyz'])
      expect((await app.get(path)).headers['x-middleware']).toBe('yes');
  });

  it('a router may have a prefix, or be nested in another, also after it has answered', async () => {
    const { router: inner, start } = routed(foo, new Router({ prefix: '/inner' }));
    await using before = await start();
    await before.expectAnswers({ 'GET /inner/api/foo': 'api/v1/foo#index {}' });
    const outer = new Router({ prefix: '/outer' });
    outer.use('/:tenant', inner.routes());
    await using app = await ServedApp.start(outer);
    await app.expectAnswers({
      'GET /outer/t1/inner/api/foo/3': 'api/v1/foo#show {"tenant":"t1","id":"3"}',
      'GET /inner/api/foo/3': '404',
      'DELETE /outer/t1/inner/api/foo': '405 HEAD, GET, POST',
    });
    expect(outer.url('api_foo', { tenant: 't1', id: 3 })).toBe('/outer/t1/inner/api/foo/3');
    await before.expectAnswers({ 'GET /inner/api/foo': 'api/v1/foo#index {}' });
  });

  it('a prefix may be optional, or have a parameter of the same name as a path', async () => {
    await using app = await routed(foo, new Router({ prefix: '{/:lang}' })).start();
    await app.expectAnswers({
      'GET /api/foo/3': 'api/v1/foo#show {"id":"3"}',
      'GET /en/api/foo/3': 'api/v1/foo#show {"lang":"en","id":"3"}',
      'GET /en/us/api/foo/3': '404',
    });
    const { values, note } = noting();
    const { start } = routed(
      (it) => {
        it.version(1, () => it.resources('rules', { only: 'new' }));
        it.version(2, () => it.resources('rules', { only: ['show', 'edit'] }));
        it.version(3, () => it.resources('rules', { only: [] }, () => it.resources('edit', { only: 'index' })));
      },
      new Router({ prefix: '/orgs/:id' }).param('id', note),
    );
    await using orgs = await start();
    await orgs.expectAnswers({
      'GET /orgs/7/api/rules/new': 'api/v1/rules#new {"id":"7"}',
      'GET /orgs/7/api/rules/new 2': 'api/v2/rules#show {"id":"new"}',
      'GET /orgs/7/api/rules/3/edit 3': 'api/v3/edit#index {"id":"7","rule_id":"3"}',
    });
    // Once for each value: that of the prefix, and that of the path.
    expect(values).toEqual(['7', '7', 'new', '7']);
  });
});

/** A handler of parameters that notes the values that it is called with. */
function noting() {
  const values: string[] = [];
  function note(value: string, _ctx: unknown, next: Next) {
    values.push(value);
    return next();
  }
  return { values, note };
}

/** Two blocks with the same paths: the vendor a has the format json, the vendor b has xml. */
function declareBoth(router: Router): void {
  for (const [vendorString, format] of Object.entries({ a: 'json', b: 'xml' })) {
    declareOn(router, (it) => it.version(1, () => it.resources('books', { only: ['show', 'edit'] })), {
      vendorString,
      formats: [format],
    });
  }
}

const A = 'application/vnd.a+json';
const B = 'application/vnd.b+json';

describe('a handler of a parameter', () => {
  it('is called once with the value that the action gets, whichever of two nested routers it is registered on', async () => {
    const [inner, outer] = [new Router(), new Router({ prefix: '/outer' })];
    const [before, shared, after, outermost] = [noting(), noting(), noting(), noting()];
    inner.param('id', before.note).param('id', shared.note);
    declareBoth(inner);
    inner.param('id', after.note);
    outer.param('id', shared.note).use('/:tenant', inner.routes());
    outer.param('id', outermost.note);
    await using app = await ServedApp.start(outer);
    await app.expectAnswers({
      [`GET /outer/t/api/books/1.xml ${A}`]: 'api/v1/books#show {"tenant":"t","id":"1.xml"}',
      [`GET /outer/t/api/books/2.json ${A}`]: 'api/v1/books#show {"tenant":"t","id":"2","format":"json"}',
      [`GET /outer/t/api/books/3.xml ${B}`]: 'api/v1/books#show {"tenant":"t","id":"3","format":"xml"}',
      [`GET /outer/t/api/books/a%2Fb.c%20d ${A}`]: 'api/v1/books#show {"tenant":"t","id":"a/b.c d"}',
    });
    for (const { values } of [before, shared, after, outermost]) expect(values).toEqual(['1.xml', '2', '3', 'a/b.c d']);
  });

  it('is called only for the selected path, whose parameters alone are in the context', async () => {
    const router = new Router();
    const seen: unknown[] = [];
    for (const name of ['post_id', 'id'])
      router.param(name, (_id, ctx, next) => (seen.push({ ...ctx.params }), next()));
    const { start } = routed((it) => {
      it.version(1, () => it.resources('posts', { only: [] }, () => it.resources('edit', { only: 'index' })));
      it.version(2, () => it.resources('posts', { only: 'edit' }));
    }, router);
    await using app = await start();
    await app.expectAnswers({
      'GET /api/posts/7/edit 2': 'api/v2/posts#edit {"id":"7"}',
      'GET /api/posts/8/edit 1': 'api/v1/edit#index {"post_id":"8"}',
    });
    expect(seen).toEqual([{ id: '7' }, { post_id: '8' }]);
  });
});

describe('an error of a handler of a parameter', () => {
  it('has its own status and Vary: Accept, whichever router the handler is registered on, before or after the block', async () => {
    const thrown = Object.assign(new Error('no'), { status: 409, expose: true, headers: { Vary: 'Origin' } });
    function refuse(): never {
      throw thrown;
    }
    const before = routed(foo, new Router().param('id', refuse));
    const after = routed(foo);
    after.router.param('id', refuse);
    await using app = await before.start();
    await using nested = await ServedApp.start(new Router().use('/:tenant', after.router.routes()));
    for (const answer of [await app.get('/api/foo/1'), await nested.get('/t/api/foo/1')]) {
      expect([answer.status, answer.headers.vary, answer.text]).toEqual([409, 'Origin, Accept', 'no']);
    }
  });
});

it('a route name that two paths would have is that of the first, also over versions, unless the other has one of its own', async () => {
  const { router, routes, start } = routed((it) => {
    it.version(1, () => {
      it.cache({ as: 'v1' }, () => it.resource('user', { only: ['show', 'edit'] }));
      it.resources('news', { only: ['index', 'show'] });
      it.namespace('a', () => it.resources('books', { only: 'index' }));
      it.resources('a-books', { only: 'index' });
    });
    it.version(2, () => {
      it.inherit({ from: 'v1' });
      it.resources('users', { only: ['show', 'edit'] });
      it.resource('news', { only: 'show' });
    });
  });
  expect(Object.fromEntries(routes.map(({ path, name }) => [path, name]))).toEqual({
    '/api/user': 'api_user',
    '/api/user/edit': 'edit_api_user',
    '/api/users/:id': '',
    '/api/users/:id/edit': '',
    '/api/news': 'api_news_index',
    '/api/news/:id': 'api_news',
    '/api/a/books': 'api_a_books',
    '/api/a-books': '',
  });
  await using app = await start();
  await app.expectAnswers({
    'GET /api/users/3 2': 'api/v2/users#show {"id":"3"}',
    'GET /api/user/edit': 'api/v1/user#edit {}',
    'GET /api/news 2': 'api/v2/news#show {}',
    'GET /api/a-books': 'api/v1/a-books#index {}',
  });
  expect(router.url('api_user', {})).toBe('/api/user');
});

it('a declaration returns its routes', () => {
  const { routes } = routed((it) => {
    it.version(1, () => it.resources('posts', { only: ['index', 'update'] }));
    it.version(3, () => it.resource('profile', { only: 'show' }));
  });
  expect(routes.toSorted((one, other) => (one.method < other.method ? -1 : 1))).toEqual([
    expect.objectContaining({ version: 1, method: 'GET', path: '/api/posts', name: 'api_posts', action: 'index' }),
    { version: 3, method: 'GET', path: '/api/profile', name: 'api_profile', action: 'show' },
    { version: 1, method: 'PUT', path: '/api/posts/:id', name: 'api_post', action: 'update' },
  ]);
});
