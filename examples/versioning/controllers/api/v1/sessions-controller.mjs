export default class SessionsController {
  create(ctx) {
    ctx.status = 201;
    return { token: 'secret' };
  }
}
