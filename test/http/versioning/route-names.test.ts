import { Router } from '@koa/router';
import { type Api, type DeclaredRoute, api } from '../../../src/http/versioning';
import { ServedApp, acme, appOf, describing } from './serve-api';

function declared(declare: (it: Api) => void): { readonly router: Router; readonly routes: readonly DeclaredRoute[] } {
  const router = new Router();
  return { router, routes: api(router, { vendorString: 'acme', controllers: describing }, declare) };
}

/** The name of each path. */
function namesOf(routes: readonly DeclaredRoute[]): Readonly<Record<string, string>> {
  return Object.fromEntries(routes.map(({ path, name }) => [path, name]));
}

describe('a route name that two paths would have', () => {
  it('is that of the first path, as in Rails, and the other path has none', async () => {
    const { router, routes } = declared((it) => {
      it.version(1, () => {
        it.resources('users', { only: ['index', 'show', 'edit'] });
        it.resource('user', { only: ['show', 'edit'] });
      });
    });
    expect(namesOf(routes)).toEqual({
      '/api/users': 'api_users',
      '/api/users/:id': 'api_user',
      '/api/users/:id/edit': 'edit_api_user',
      '/api/user': '',
      '/api/user/edit': '',
    });
    await using app = await ServedApp.start(appOf(router));
    expect((await app.get('/api/users/3')).text).toBe('api/v1/users#show {"id":"3"}');
    expect((await app.get('/api/user')).text).toBe('api/v1/user#show {}');
    expect((await app.get('/api/user/edit')).text).toBe('api/v1/user#edit {}');
    expect(router.url('api_user', { id: 3 })).toBe('/api/users/3');
    expect(router.url('edit_api_user', { id: 3 })).toBe('/api/users/3/edit');
  });

  it('is that of the first path also when a later version declares the other', async () => {
    const { router, routes } = declared((it) => {
      it.version(1, () => it.cache({ as: 'v1' }, () => it.resource('user', { only: 'show' })));
      it.version(2, () => {
        it.inherit({ from: 'v1' });
        it.resources('users', { only: 'show' });
      });
    });
    expect(namesOf(routes)).toEqual({ '/api/user': 'api_user', '/api/users/:id': '' });
    await using app = await ServedApp.start(appOf(router));
    expect((await app.get('/api/user', acme(2))).text).toBe('api/v2/user#show {}');
    expect((await app.get('/api/users/3', acme(2))).text).toBe('api/v2/users#show {"id":"3"}');
  });

  it('is that of the first path also among namespaces', async () => {
    const { router } = declared((it) =>
      it.version(1, () => {
        it.namespace('a', () => it.resources('books', { only: 'index' }));
        it.resources('a-books', { only: 'index' });
      }),
    );
    await using app = await ServedApp.start(appOf(router));
    expect((await app.get('/api/a-books')).text).toBe('api/v1/a-books#index {}');
    expect(router.url('api_a_books', {})).toBe('/api/a/books');
  });

  it('is not taken from its path by another path, which has its own name from another version', async () => {
    const { router, routes } = declared((it) => {
      it.version(1, () => it.resources('news', { only: ['index', 'show'] }));
      it.version(2, () => it.resource('news', { only: 'show' }));
    });
    expect(namesOf(routes)).toEqual({ '/api/news': 'api_news_index', '/api/news/:id': 'api_news' });
    await using app = await ServedApp.start(appOf(router));
    expect((await app.get('/api/news', acme(2))).text).toBe('api/v2/news#show {}');
  });
});
