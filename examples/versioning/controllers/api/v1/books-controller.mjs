const BOOKS = new Map([
  ['1', { id: '1', title: 'The Left Hand of Darkness' }],
  ['2', { id: '2', title: 'Solaris' }],
]);

export default class BooksController {
  index() {
    return [...BOOKS.values()];
  }

  show(ctx) {
    return BOOKS.get(ctx.params.id);
  }

  create(ctx) {
    ctx.status = 201;
    ctx.set('Location', ctx.router.url('api_book', { id: '3' }));
    return { id: '3' };
  }
}
