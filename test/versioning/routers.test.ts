import { Router } from '@koa/router';
import type { Api } from '../../packages/versioning/src';
import { ServedApp, declareOn } from './serve-api';

/** A router with a block, and its application. */
function routed(declare: (it: Api) => void, router = new Router()) {
  return { router, routes: declareOn(router, declare), start: () => ServedApp.start(router) };
}

function foo(it: Api): void {
  it.version(1, () => it.resources('foo'));
}
describe('a handler of a parameter', () => {
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
  it('has its own status and Vary: Accept, whichever router has the handler, before or after the block', async () => {
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

it('a route name that two paths would have is that of the first, unless the other has one of its own', async () => {
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
