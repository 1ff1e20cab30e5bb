import { serve } from './serve-api';

describe('a path', () => {
  it('with a name comes before one with a parameter, whatever the versions declare first', async () => {
    await using app = await serve((it) => {
      it.version(1, () => it.resources('foo', { only: ['show', 'destroy'] }));
      it.version(2, () => {
        it.resources('foo', { only: ['show', 'new'] });
        it.namespace('foo', () => it.resources('special', { only: 'index' }));
      });
    });
    await app.expectAnswers({
      'GET /api/foo/new 1': 'api/v1/foo#show {"id":"new"}',
      'GET /api/foo/new 2': 'api/v2/foo#new {}',
      'DELETE /api/foo/new 1': 'api/v1/foo#destroy {"id":"new"}',
      'GET /api/foo/special 1': 'api/v1/foo#show {"id":"special"}',
      'GET /api/foo/special 2': 'api/v2/foo/special#index {}',
    });
  });

  it('may end with a known format; other dots belong to the parameter', async () => {
    await using app = await serve((it) => it.version(1, () => it.resources('foo')), { formats: ['json', 'csv'] });
    await app.expectAnswers({
      'GET /api/foo.json': 'api/v1/foo#index {"format":"json"}',
      'GET /api/foo/3.csv': 'api/v1/foo#show {"id":"3","format":"csv"}',
      'GET /api/foo/x@example.com': 'api/v1/foo#show {"id":"x@example.com"}',
      'GET /api/foo/new.json': 'api/v1/foo#new {"format":"json"}',
      'GET /api/foo/1.2.3.4/edit.json': 'api/v1/foo#edit {"id":"1.2.3.4","format":"json"}',
      'GET /api/foo/a%2Fb': 'api/v1/foo#show {"id":"a/b"}',
      'GET /api/foo.xml': '404',
      'GET /api/foo.': '404',
      'GET /api/foo/1/edit.xml': '404',
    });
  });

  it('of a nested resource has the parameter of the enclosing one', async () => {
    await using app = await serve((it) =>
      it.version(1, () =>
        it.namespace('admin', () =>
          it.resources('posts', { only: 'show' }, () =>
            it.resources('replies', () => it.namespace('meta', () => it.resources('rate-limits', { only: 'index' }))),
          ),
        ),
      ),
    );
    await app.expectAnswers({
      'GET /api/admin/posts/7/replies/9': 'api/v1/admin/replies#show {"post_id":"7","id":"9"}',
      'GET /api/admin/posts/7/replies/9/meta/rate-limits':
        'api/v1/admin/meta/rate-limits#index {"post_id":"7","reply_id":"9"}',
    });
    expect(app.router.url('edit_api_admin_post_reply', { post_id: 7, id: 9 })).toBe(
      '/api/admin/posts/7/replies/9/edit',
    );
    expect(app.router.url('api_admin_post_reply_meta_rate_limits', { post_id: 7, reply_id: 9 })).toBe(
      '/api/admin/posts/7/replies/9/meta/rate-limits',
    );
  });
});

it('a resource of which there is one has the routes of Rails, without index and id, and is kept by a cache', async () => {
  await using app = await serve((it) => {
    it.version(1, () =>
      it.cache({ as: 'v1' }, () =>
        it.resource('user-profile', () => {
          it.resource('picture', { only: 'show' });
          it.resources('posts', { only: 'show' });
        }),
      ),
    );
    it.version(2, () => it.inherit({ from: 'v1' }));
  });
  await app.expectAnswers({
    'GET /api/user-profile': 'api/v1/user-profile#show {}',
    'GET /api/user-profile.json': 'api/v1/user-profile#show {"format":"json"}',
    'PUT /api/user-profile 2': 'api/v2/user-profile#update {}',
    'GET /api/user-profile/new': 'api/v1/user-profile#new {}',
    'GET /api/user-profile/edit': 'api/v1/user-profile#edit {}',
    'GET /api/user-profile/picture': 'api/v1/picture#show {}',
    'GET /api/user-profile/posts/7': 'api/v1/posts#show {"id":"7"}',
    'GET /api/user-profile/7': '404',
  });
  expect(app.router.url('edit_api_user_profile', {})).toBe('/api/user-profile/edit');
  expect(app.router.url('api_user_profile_post', { id: 7 })).toBe('/api/user-profile/posts/7');
});

describe('shallow resources', () => {
  it('have members without the enclosing resources, in URLs and names, on all levels', async () => {
    await using app = await serve(
      (it) =>
        it.version(1, () =>
          it.resources('posts', { only: 'show', shallow: true }, () => {
            it.resources('replies', () => it.resources('votes', { only: ['index', 'show'] }));
            it.resource('cover', { only: 'show' }, () => it.resources('prints', { only: ['index', 'show'] }));
            it.namespace('admin', () => it.resources('notes', { only: ['index', 'edit'] }));
          }),
        ),
      { path: '' },
    );
    await app.expectAnswers({
      'GET /posts/7': 'api/v1/posts#show {"id":"7"}',
      'GET /posts/7/replies': 'api/v1/replies#index {"post_id":"7"}',
      'GET /posts/7/replies/new': 'api/v1/replies#new {"post_id":"7"}',
      'GET /posts/7/replies/1': '404',
      'GET /replies': '404',
      'GET /replies/1/edit': 'api/v1/replies#edit {"id":"1"}',
      'DELETE /replies/1': 'api/v1/replies#destroy {"id":"1"}',
      'GET /replies/1/votes': 'api/v1/votes#index {"reply_id":"1"}',
      'GET /votes/2': 'api/v1/votes#show {"id":"2"}',
      'GET /posts/7/cover': 'api/v1/cover#show {"post_id":"7"}',
      'GET /posts/7/cover/prints': 'api/v1/prints#index {"post_id":"7"}',
      'GET /prints/3': 'api/v1/prints#show {"id":"3"}',
      'GET /posts/7/admin/notes': 'api/v1/admin/notes#index {"post_id":"7"}',
      'GET /admin/notes/4/edit': 'api/v1/admin/notes#edit {"id":"4"}',
    });
    const names = {
      api_post_replies: '/posts/7/replies',
      new_api_post_reply: '/posts/7/replies/new',
      api_reply: '/replies/1',
      edit_api_reply: '/replies/1/edit',
      api_reply_votes: '/replies/9/votes',
      api_vote: '/votes/1',
      api_post_cover: '/posts/7/cover',
      edit_api_admin_note: '/admin/notes/1/edit',
    };
    const params = { id: 1, post_id: 7, reply_id: 9 };
    for (const [name, path] of Object.entries(names))
      expect([name, app.router.url(name, params)]).toEqual([name, path]);
  });

  it('may be the inner ones alone, and are kept by a cache', async () => {
    await using app = await serve((it) => {
      it.version(1, () => {
        it.resources('posts', { only: 'show' }, () =>
          it.cache({ as: 'replies' }, () => {
            it.resources('replies', { only: ['index', 'show'], shallow: true }, () =>
              it.resources('votes', { only: ['index', 'show'], shallow: false }),
            );
          }),
        );
        it.resource('profile', { only: [] }, () => it.resources('notes', { only: ['index', 'show'], shallow: true }));
      });
      it.version(2, () => it.resources('pages', { only: 'show' }, () => it.inherit({ from: 'replies' })));
    });
    await app.expectAnswers({
      'GET /api/posts/7': 'api/v1/posts#show {"id":"7"}',
      'GET /api/posts/7/replies': 'api/v1/replies#index {"post_id":"7"}',
      'GET /api/replies/1': 'api/v1/replies#show {"id":"1"}',
      'GET /api/replies/1/votes': 'api/v1/votes#index {"reply_id":"1"}',
      'GET /api/votes/1': 'api/v1/votes#show {"id":"1"}',
      'GET /api/profile/notes': 'api/v1/notes#index {}',
      'GET /api/notes/1': 'api/v1/notes#show {"id":"1"}',
      'GET /api/pages/7/replies 2': 'api/v2/replies#index {"page_id":"7"}',
      'GET /api/replies/1 2': 'api/v2/replies#show {"id":"1"}',
      'GET /api/votes/1 2': 'api/v2/votes#show {"id":"1"}',
    });
  });
});

it('a cache keeps the namespaces and resources inside it; a later one of the same name replaces it', async () => {
  await using app = await serve((it) => {
    it.version(1, () => {
      it.cache({ as: 'kept' }, () => it.resources('bar'));
      it.namespace('one', () =>
        it.cache({ as: 'kept' }, () => {
          it.resources('posts', { only: 'index' }, () => it.resources('replies', { only: 'index' }));
          it.namespace('inner', () => it.resources('foo', { only: 'index' }));
        }),
      );
    });
    it.version(2, () => it.namespace('two', () => it.inherit({ from: 'kept' })));
  });
  await app.expectAnswers({
    'GET /api/two/posts/1/replies 2': 'api/v2/two/replies#index {"post_id":"1"}',
    'GET /api/two/inner/foo 2': 'api/v2/two/inner/foo#index {}',
    'GET /api/one/inner/foo 2': '404',
    'GET /api/two/bar 2': '404',
  });
});
