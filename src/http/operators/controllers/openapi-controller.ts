import { OPENAPI } from '../openapi/document';
import { OperatorsController } from '../operators-controller';

/** `/api/openapi.json` */
export class OpenapiController extends OperatorsController {
  show(): void {
    this.ctx.set('Content-Type', 'application/openapi+json; version=3.1');
    this.ctx.body = JSON.stringify(OPENAPI);
  }
}
