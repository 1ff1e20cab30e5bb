import { strangeReplyTests } from './strange-replies';

describe('a store whose replies are damaged or replaced', () => {
  strangeReplyTests(2_000);
});
