import SessionsControllerV1 from '../v1/sessions-controller.mjs';

export default class SessionsController extends SessionsControllerV1 {}
