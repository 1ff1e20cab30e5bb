import BooksControllerV1 from '../v1/books-controller.mjs';

/** Version 2 puts a book into an envelope. */
export default class BooksController extends BooksControllerV1 {
  show(ctx) {
    const book = super.show(ctx);
    return book && { book };
  }
}
