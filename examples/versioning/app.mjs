// A bookshop with two versions of its API. Start it with `node examples/versioning/app.mjs`, then:
//
//   curl -i localhost:3000/api/books/1
//   curl -i localhost:3000/api/books/1 -H 'Accept: application/vnd.bookshop+json;version=2'
//   curl -i localhost:3000/api/admin/reports -H 'Accept: application/vnd.bookshop+json;version=2'
import Router from '@koa/router';
import Koa from 'koa';
import { api } from 'koa-route-versions';

const router = new Router();

api(
  router,
  { vendorString: 'bookshop', defaultVersion: 1, controllers: new URL('controllers', import.meta.url) },
  (api) => {
    api.version(1, () => {
      api.cache({ as: 'v1' }, () => {
        api.resources('books', { only: ['index', 'show', 'create'] });
        api.resources('sessions', { only: 'create' });
      });
    });
    api.version(2, () => {
      api.inherit({ from: 'v1' });
      api.namespace('admin', () => api.resources('reports', { only: 'index' }));
    });
  },
);

const server = new Koa()
  .use(router.routes())
  .use(router.allowedMethods())
  .listen(Number(process.env.PORT ?? 3000), () => {
    console.log(`listening on port ${server.address().port}`);
  });
